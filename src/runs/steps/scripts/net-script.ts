import { DIRECTORY } from "./detached-script.ts";

/** How the script ends, beside 0: confirmed. */
export const ENDS = { noNetplan: 2, untouched: 3, reverted: 9, notOurs: 10, notReverted: 11, refused: 12 } as const;

/**
 * Applies, then waits on the machine itself to be told that it is still reached; nobody telling, it takes the change back. So a
 * change that cuts the machine off heals without anybody. When it is stopped, it reverts the change at once.
 *
 * Both the new file and the former one lie beside the real one, whole, before anything is changed: from then on files are only
 * renamed, which a full disk does not keep anybody from. A third file says whose the settings are, so that one change never
 * reverts another. One that still waits to be confirmed when the next one comes is reverted first.
 */
export const APPLY_SCRIPT = `set -u
if ! command -v netplan >/dev/null 2>&1; then
  echo "this system has no netplan, which network changes are made with" >&2
  exit ${ENDS.noNetplan}
fi
work="${DIRECTORY}$MILLWRIGHT_MARK"
file="\${NETPLAN_DIRECTORY:-/etc/netplan}/90-millwright.yaml"
before="$file.before-$MILLWRIGHT_MARK"
after="$file.after-$MILLWRIGHT_MARK"
by="$(cat "$file.mark" 2>/dev/null)"
earlier="${DIRECTORY}$by"
waited=0
while [ -n "$by" ] && [ -s "$earlier/pid" ] && [ ! -s "$earlier/exit" ] && grep -q "MILLWRIGHT_MARK=$by" "/proc/$(cat "$earlier/pid")/environ" 2>/dev/null; do
  if [ "$waited" = 0 ]; then echo "an earlier change that was not confirmed is reverted first"; fi
  if [ "$waited" -ge 30 ]; then
    echo "an earlier change is not reverted yet: nothing was changed" >&2
    exit ${ENDS.untouched}
  fi
  true > "$earlier/stop"
  sleep 1
  waited=$((waited + 1))
done
if [ -e "$work/stop" ]; then
  echo "stopped: nothing was changed" >&2
  exit ${ENDS.untouched}
fi
had=no
ready=yes
if [ -n "$NET_CONFIG" ]; then
  if [ -e "$file" ]; then
    had=yes
    if ! cat "$file" > "$before" || [ "$(cat "$before"; echo .)" != "$(cat "$file"; echo .)" ]; then ready=no; fi
  fi
  ours="$(printf '%s\\n.' "$NET_CONFIG")"
  if ! printf '%s\\n' "$NET_CONFIG" > "$after" || [ "$(cat "$after"; echo .)" != "$ours" ]; then ready=no; fi
  if [ "$ready" = yes ] && ! echo "$MILLWRIGHT_MARK" > "$file.mark"; then ready=no; fi
  if [ "$ready" = yes ] && ! mv -f "$after" "$file"; then ready=no; fi
  if [ "$ready" = no ]; then
    rm -f "$before" "$after"
    echo "the settings could not be written and kept whole: nothing was changed" >&2
    exit ${ENDS.untouched}
  fi
fi
end=${ENDS.refused}
why=""
if netplan apply; then
  end=${ENDS.reverted}
  true > "$work/applied"
  waited=0
  while [ "$waited" -lt "$NET_ROLLBACK" ] && [ ! -e "$work/stop" ]; do
    if [ -e "$work/confirmed" ]; then
      rm -f "$before"
      echo "confirmed"
      exit 0
    fi
    sleep 1
    waited=$((waited + 1))
  done
  if [ -e "$work/stop" ]; then why="stopped: reverted"; else why="not confirmed within $NET_ROLLBACK s: reverted"; fi
fi
if [ -n "$NET_CONFIG" ]; then
  if [ "$(cat "$file.mark" 2>/dev/null)" != "$MILLWRIGHT_MARK" ] || [ "$(cat "$file" 2>/dev/null; echo .)" != "$ours" ]; then
    rm -f "$before"
    echo "left as it is: $file was changed by somebody else since" >&2
    exit ${ENDS.notOurs}
  fi
  if [ "$had" = yes ]; then
    if ! mv -f "$before" "$file"; then end=${ENDS.notReverted}; fi
  else
    if ! rm -f "$file"; then end=${ENDS.notReverted}; fi
  fi
  if [ "$end" != ${ENDS.notReverted} ]; then rm -f "$file.mark"; fi
fi
netplan apply
if [ -n "$why" ]; then echo "$why" >&2; fi
exit "$end"
`;
