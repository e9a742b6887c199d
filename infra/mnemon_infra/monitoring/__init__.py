"""What Prometheus and Grafana are given: scrape configurations, alert rules, a dashboard."""
