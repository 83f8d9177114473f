# Drivers for the hardware that is there, and the disks that they bring.

# One driver brings devices that want the next one: a controller its disks. Three rounds reach them all.
load_modules() {
  [ -d /lib/modules ] || return 0
  for round in 1 2 3; do
    find /sys/devices -name modalias -exec cat {} + 2>/dev/null | sort -u | while read -r alias; do
      modprobe -q "$alias" 2>/dev/null
    done
  done
  return 0
}

# Names of all disks, one a line. What is made of disks (md, dm) and what is in memory is none.
list_disks() {
  for block in /sys/block/*; do
    name=${block##*/}
    case "$name" in
      loop* | ram* | zram* | sr* | fd* | dm-* | md* | nbd* | nvme*c*n*) continue ;;
    esac
    [ -e "$block/device" ] && [ "$(cat "$block/size")" -gt 0 ] && echo "$name"
  done
}

# The disks may take a moment to appear after their driver.
wait_for_disks() {
  seconds=0
  while [ -z "$(list_disks)" ] && [ "$seconds" -lt 30 ]; do
    sleep 1
    seconds=$((seconds + 1))
  done
}

# first_disk: where an image goes unless the workflow says.
first_disk() {
  for name in $(list_disks); do
    [ "$(cat "/sys/block/$name/removable")" = 0 ] && [ "$(cat "/sys/block/$name/ro")" = 0 ] && echo "/dev/$name" && return
  done
}

serial_of() {
  cat "/sys/block/$1/serial" 2>/dev/null || cat "/sys/block/$1/device/serial" 2>/dev/null ||
    cat "/sys/block/$1/device/wwid" 2>/dev/null || true
}

# size_of FILE: in bytes, of a disk or of a file.
size_of() { if [ -b "$1" ]; then blockdev --getsize64 "$1"; else stat -c %s "$1"; fi; }

# So that what is read next comes from the disk itself.
forget_cached() {
  sync
  if [ -b "$1" ]; then
    blockdev --flushbufs "$1"
    echo 3 >/proc/sys/vm/drop_caches
  fi
  return 0
}
