#!/bin/sh
# Carries out step $1 once. It ends with 0 when that went well; otherwise $WORK/step-why says what went wrong.
set -u
HERE=${HERE:-/lib/millwright}
. "$HERE/words.sh"
. "$HERE/report.sh"
. "$HERE/devices.sh"
. "$HERE/image.sh"
. "$HERE/partition.sh"
. "$HERE/steps.sh"

step_number=$1
step_count=$(ls "$WORK/steps" | wc -l)
load_step "$step_number"

# Progress of the image is progress of its step.
progress() {
  send_report "progress-$sequence-$1" "\"installation_status\":\"progress\",\"installation_progress\":$(share_of "$1")" || true
}

failed() {
  echo "$1" >"$WORK/step-why"
  exit 1
}
told() { echo "$1" >"$WORK/step-told"; }

step_boot() {
  [ -n "$(word image)" ] || return 0
  install_image "$(word image)" "$(word digest)" "$(word target)" || failed "$why"
}

step_reboot() { :; }

step_wait() {
  url=$(config url)
  if [ -n "$url" ]; then
    until timeout 30 wget -q -O /dev/null "$url"; do sleep 2; done
  fi
  sleep "$(config seconds 0)"
}

step_disk_scan() {
  wait_for_disks
  found='' count=0
  for name in $(list_disks); do
    bytes=$(size_of "/dev/$name")
    [ "$bytes" -ge "$(config min_bytes 0)" ] || continue
    count=$((count + 1))
    found="$found${found:+, }/dev/$name ($bytes bytes)"
  done
  [ "$count" -ge "$(config min_disks 1)" ] || failed "found $count of $(config min_disks 1) disks of $(config min_bytes 0) bytes and more: ${found:-none}"
  told "$found"
}

step_partition() {
  disk=$(target_disk)
  [ -w "$disk" ] || failed "there is no disk ${disk:-at all}"
  write_partitions "$disk" "$folder/config.partitions" || failed "$why"
}

step_script() {
  script=$folder/config.script
  if [ ! -e "$script" ]; then
    script=$WORK/script
    timeout 600 wget -q -O "$script" "$(config url)" || failed "$(config url) could not be loaded"
  fi
  disk=$(target_disk)
  # Whether a script writes to it shows only afterwards.
  [ ! -r "$disk" ] || [ -e "$WORK/first-mib" ] || first_mib_of "$disk" >"$WORK/first-mib"
  MILLWRIGHT_TARGET=$disk MILLWRIGHT_SERVER=$SERVER MILLWRIGHT_NODE=$(word node) MILLWRIGHT_MAC=$MAC \
    sh "$script" >"$WORK/script-output" 2>&1
  ended=$?
  cat "$WORK/script-output"
  last=$(tail -n 1 "$WORK/script-output")
  [ "$ended" -eq 0 ] || failed "the script ended with $ended: $last"
  told "$last"
}

# What cloud-init finds on a disk that it starts from.
step_cloud_init() {
  disk=$(target_disk)
  part=$(partition_of "$disk" "$(config partition 1)")
  mkdir -p "$WORK/root"
  # The kernel finds no modprobe by itself here.
  for driver in ext4 xfs vfat nls_cp437 nls_iso8859_1; do modprobe -q "$driver" 2>/dev/null; done
  mount "$part" "$WORK/root" || failed "$part cannot be mounted: is there a filesystem on it, and its driver in the environment?"
  seed=$WORK/root/var/lib/cloud/seed/nocloud
  if ! { mkdir -p "$seed" && config user_data >"$seed/user-data" &&
    config meta_data "instance-id: $(word node)-$BOOT_ID" >"$seed/meta-data"; }; then
    umount "$WORK/root"
    failed "$part cannot be written"
  fi
  [ ! -e "$folder/config.network_config" ] || config network_config >"$seed/network-config"
  sync
  umount "$WORK/root" || failed "$part cannot be unmounted"
}

"step_$type"
