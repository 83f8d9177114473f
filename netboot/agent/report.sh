# Tells the server. A report is sent until it was taken: its id makes that safe.

BOOT_ID=$(cat /proc/sys/kernel/random/boot_id)
REPORT_TRIES=${REPORT_TRIES:-30}

# json_text TEXT [LENGTH]: its beginning, as the inside of a JSON string. Cut before it is escaped: half an escape is no JSON.
json_text() { printf '%s' "$1" | tr -d '\000-\037' | cut -c "1-${2:-4000}" | sed 's/[\\"]/\\&/g'; }

# send_report NAME MEMBERS: the members are JSON without the braces. The same name twice in one boot is the same report.
send_report() {
  # Not wget's own -T: in some builds of busybox it crashes.
  timeout 30 wget -q -O "$WORK/reply" --header 'Content-Type: application/json' \
    --post-data "{\"mac_address\":\"$MAC\",\"report_id\":\"$BOOT_ID-$1\",\"report_token\":\"$TOKEN\",$2}" \
    "$SERVER/api/v1/report"
}

report() {
  tries=0
  until send_report "$1" "$2"; do
    tries=$((tries + 1))
    if [ "$tries" -ge "$REPORT_TRIES" ]; then
      say "the report of $1 was not taken"
      return 1
    fi
    sleep 2
  done
}

# The server took `started` for what it is. While another job has the machine, or nobody wants it installed any more, it did not,
# and the disks stay as they are.
may_install() { grep -q '"state":"installing"' "$WORK/reply"; }

# progress PERCENT: once, since the next one says more anyway.
progress() { send_report "progress-$1" "\"installation_status\":\"progress\",\"installation_progress\":$1" || true; }

# What the firmware says of the machine, as members of a report.
who_am_i() {
  dmi=/sys/class/dmi/id
  printf '"ip_address":"%s"' "$(json_text "${ADDRESS:-}")"
  for pair in vendor:sys_vendor model:product_name serial_number:product_serial system_uuid:product_uuid; do
    told=$(cat "$dmi/${pair#*:}" 2>/dev/null)
    printf ',"%s":"%s"' "${pair%%:*}" "$(json_text "$told" 255)"
  done
}
