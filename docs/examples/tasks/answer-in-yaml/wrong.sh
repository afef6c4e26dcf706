#!/bin/sh
# Lists the minimum instead of what is missing.
# expect shell.assert-agent: $[0].order: expected to equal 3 (integer)
cat <<'END'
Two items are below their minimum.

```yaml
- {item: lamp, order: 5}
- {item: desk, order: 1}
```
END
