"""`ext-recorder lint`: a recorded session held against its specification.

naming     which event of the rules a message is
schemas    what a message says, against its schema
states     what may come when
linting    one cassette, with what was found in it
"""
