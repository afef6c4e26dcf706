#!/bin/sh
cat <<'END'
The chairs are sufficient; the desks are sold out, and three lamps are missing:

```yaml
- item: desk
  order: 1
- item: lamp
  order: 3
```

Tell me if I should place the order.
END
