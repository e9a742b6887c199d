"""Configuration for Prometheus and Grafana: scrape configurations, alert rules, a dashboard."""
