"""Objects of manifests: where they come from, and sending many of them."""
