"""Operations on a deployment, without a user interface: the CLI and the admin page call them."""
