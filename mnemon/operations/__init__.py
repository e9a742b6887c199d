"""Operations on a deployment, without a face: the CLI and the admin page call them."""
