#!/bin/sh
# Whether this machine's network serves: it has a default route, and the given hosts answer.
# Variables: hosts (names or addresses separated by blanks; none by default)
set -eu

if command -v ip >/dev/null 2>&1; then
  if [ -z "$(ip route show default)" ]; then
    echo "there is no default route" >&2
    exit 1
  fi
  ip -brief address show scope global
fi
for host in ${hosts:-}; do
  if ! ping -c 1 -W 5 "$host" >/dev/null; then
    echo "$host does not answer" >&2
    exit 1
  fi
  echo "$host answers"
done
echo "the network serves"
