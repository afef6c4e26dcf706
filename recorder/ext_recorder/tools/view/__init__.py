"""`view`: one self-contained HTML page of a cassette. It requires no server, network or other file.

    page      assembles the page: template, styles, scripts, and the two blocks of data
    rows      table of the page: a row for each call, notification, line, mark and HTTP interaction
    bodies    texts of the messages in chunks, which the page reads only when it shows them
    traffic   HTTP interactions of NAME.http.yaml as rows

    page.html, page.css, scripts/    the page; scripts are concatenated, `main.js` last

Python writes data and no markup; the scripts create elements and never parse markup, because a cassette is untrusted.
"""
