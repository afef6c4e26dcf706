"""`ext-recorder view`: one self-contained HTML page of a cassette, which needs no server, network or other file.

    page      assembles the page: template, styles, scripts, and the two blocks of data
    rows      the table of the page: a row for each call, notification, line, mark and HTTP interaction
    bodies    the messages: text in chunks, which the page reads only when it shows them
    traffic   the HTTP interactions of NAME.http.yaml as rows

    page.html, page.css, scripts/    the page; scripts/ begins with what has no part in the page, and ends with main.js

Python writes data and no markup; the scripts create elements and never parse markup, because a cassette is untrusted.
"""
