"""What messages are held against: one module for each part of them. Answers and requests (of a mock) are told alike."""
