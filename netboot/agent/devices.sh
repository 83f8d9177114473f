# Drivers for the hardware that is there, and the disks that they bring.

# One driver brings devices that want the next one: a controller its disks. Three rounds reach them all; each asks only for what is
# new, and for all of it at once, since every modprobe reads the whole table of drivers.
load_modules() {
  [ -d /lib/modules ] || return 0
  # A line that no device has: to busybox a list of nothing excludes everything.
  echo - >"$WORK/aliases"
  for round in 1 2 3; do
    find /sys/devices -name modalias -exec cat {} + 2>/dev/null | sort -u >"$WORK/present"
    grep -vxF -f "$WORK/aliases" "$WORK/present" >"$WORK/new" || break
    # shellcheck disable=SC2046 # each is a word of its own
    modprobe -q -a $(cat "$WORK/new") 2>/dev/null
    mv "$WORK/present" "$WORK/aliases"
  done
  return 0
}

SYS_BLOCK=${SYS_BLOCK:-/sys/block}

# Names of all disks, one a line. What is made of disks (md, dm) and what is in memory is none.
list_disks() {
  for block in "$SYS_BLOCK"/*; do
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
    [ "$(cat "$SYS_BLOCK/$name/removable")" = 0 ] && [ "$(cat "$SYS_BLOCK/$name/ro")" = 0 ] && echo "/dev/$name" && return
  done
}

# writes_to DISK: from here on it holds what this installation has begun.
writes_to() { readlink -f "$1" >>"$WORK/written"; }

first_mib_of() { head -c 1048576 "$1" | sha256sum; }

serial_of() {
  cat "$SYS_BLOCK/$1/serial" 2>/dev/null || cat "$SYS_BLOCK/$1/device/serial" 2>/dev/null ||
    cat "$SYS_BLOCK/$1/device/wwid" 2>/dev/null || true
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
