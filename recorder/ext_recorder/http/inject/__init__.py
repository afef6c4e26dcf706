"""Files for the PYTHONPATH of a child: `sitecustomize`, and the agent that it starts."""
