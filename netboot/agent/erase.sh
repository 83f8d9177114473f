# Wipes every disk, reads samples back, and reports each disk and then the end. Whatever is not certain is not called erased.

SAMPLES=${SAMPLES:-64}
SAMPLE_BYTES=4096

erase_all() {
  wait_for_disks
  names='' bad=''
  for name in $(list_disks); do
    disk=/dev/$name
    say "erases $disk"
    erase_disk "$name" "$disk"
    serial=$(json_text "$(serial_of "$name")" 255)
    report "erased-$name" "\"event\":\"disk_erased\",\"erased_disk\":{\"disk\":\"$disk\",\"serial\":\"$serial\",\"method\":\"$method\",\"verified\":$verified}" || return 1
    names="$names${names:+,}\"$disk\""
    [ "$verified" = true ] || bad="$bad $disk"
  done
  if [ -z "$names" ]; then
    erase_failed "no disk was found: is the driver of its controller in the environment?"
    return 1
  fi
  if [ -n "$bad" ]; then
    erase_failed "not erased:$bad"
    return 1
  fi
  report erased "\"event\":\"erased\",\"erased_disks\":[$names]"
}

erase_failed() { report erase-failed "\"event\":\"erase_failed\",\"installation_error\":\"$(json_text "$1")\""; }

# erase_disk NAME DISK: sets `method` and `verified`. The quick ways are believed only if the samples are blank.
erase_disk() {
  verified=false
  if [ "$(cat "$SYS_BLOCK/$1/ro" 2>/dev/null)" = 1 ]; then
    method="none: the disk is read-only"
    return
  fi
  for method in nvme_format blkdiscard overwrite; do
    "erase_by_$method" "$2" || continue
    forget_cached "$2"
    if is_blank "$2"; then
      verified=true
      return
    fi
  done
}

erase_by_nvme_format() {
  case "$1" in /dev/nvme*) ;; *) return 1 ;; esac
  command -v nvme >/dev/null && nvme format "$1" --ses=1 --force >/dev/null
}

erase_by_blkdiscard() { blkdiscard "$1" 2>/dev/null; }

erase_by_overwrite() {
  blocks=$(($(size_of "$1") / 1048576))
  dd if=/dev/zero of="$1" bs=1048576 count="$blocks" conv=notrunc 2>/dev/null || return 1
  # What is left behind the last whole MiB.
  left=$(($(size_of "$1") - blocks * 1048576))
  [ "$left" -eq 0 ] || dd if=/dev/zero of="$1" bs=512 seek=$((blocks * 2048)) count=$((left / 512)) conv=notrunc 2>/dev/null
}

# is_blank DISK: at its beginning, at its end, and in between.
is_blank() {
  last_sample=$(($(size_of "$1") / SAMPLE_BYTES - 1))
  head -c "$SAMPLE_BYTES" /dev/zero >"$WORK/blank"
  sample=0
  while [ "$sample" -le "$SAMPLES" ]; do
    at=$((last_sample * sample / SAMPLES))
    dd if="$1" bs="$SAMPLE_BYTES" skip="$at" count=1 2>/dev/null | cmp -s - "$WORK/blank" || return 1
    sample=$((sample + 1))
  done
}
