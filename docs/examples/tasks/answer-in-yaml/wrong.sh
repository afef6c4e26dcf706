#!/bin/sh
# Lists the minimum instead of what is missing.
# expect shell.assert-agent: expected to equal {"item": "lamp", "order": 3}
cat <<'END'
Two items are below their minimum.

```yaml
- {item: lamp, order: 5}
- {item: desk, order: 1}
```
END
