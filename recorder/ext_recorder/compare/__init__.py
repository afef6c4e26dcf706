"""Comparing recorded messages with others: live ones (`verify`), or those of another cassette (`diff`).

comparing     two messages of one protocol, as JSON values
counterparts  ids and names that stand for each other in two sessions
pairing       the messages of two cassettes that belong together
findings      what differs, for people and for programs
words         messages and values, short and on one line
diff          what differs between two cassettes
"""
