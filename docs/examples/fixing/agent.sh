#!/bin/sh
# An agent for `ext-host agent` that needs no model: it edits the files of the project in the current directory.
set -eu
echo 'DatatypeConverter is replaced by Base64.'
echo '{"kaiak/stream/progress": {"percentage": 50, "phase": "editing"}}'
sed 's/javax.xml.bind.DatatypeConverter/java.util.Base64/' src/DataConverter.java > src/new
mv src/new src/DataConverter.java
rm src/OldConverter.java
echo '// Tests of Base64' > src/ConverterTest.java
