#!/bin/sh
# Does what the boot script asked for on the kernel's command line, and reports it. Ends with 10 when the machine is to be
# switched off, and with anything else when it is to boot again.
set -u
HERE=${HERE:-/lib/millwright}
. "$HERE/words.sh"
. "$HERE/report.sh"
. "$HERE/devices.sh"
. "$HERE/network.sh"
. "$HERE/image.sh"
. "$HERE/erase.sh"
. "$HERE/steps.sh"

say "begins"
load_modules
if ! bring_network_up "$MAC"; then
  say "no network: nothing can be reported, so it boots again"
  sleep "$PAUSE"
  exit 1
fi

if [ "$(word task)" = erase ]; then
  if erase_all; then say "erased"; else say "not erased"; fi
  exit 10
fi

resumes=false
has_steps=true
if [ -n "$(word steps)" ]; then fetch_steps || has_steps=false; fi
if [ "$resumes" = false ]; then
  report started "\"installation_status\":\"started\",$(who_am_i)" || exit 1
  if ! may_install; then
    say "the server does not want it installed now; it boots again"
    sleep "$PAUSE"
    exit 1
  fi
fi
if [ "$has_steps" = false ]; then
  : # `why` says it
elif [ -n "$(word steps)" ]; then
  if run_steps; then exit 0; fi
elif [ -z "$(word image)" ]; then
  why="the boot script names neither an image, nor steps, nor a task"
elif install_image "$(word image)" "$(word digest)" "$(word target)"; then
  report complete '"installation_status":"complete","installation_progress":100'
  say "installed"
  exit 0
fi
say "failed: $why"
report failed "\"installation_status\":\"failed\",\"installation_error\":\"$(json_text "$why")\""
sleep "$PAUSE"
exit 1
