# Writes a partition table that every firmware reads, byte by byte: at most four partitions, each on a whole MiB.

SECTORS_A_MIB=2048

# little_endian NUMBER: four bytes, as printf writes them.
little_endian() {
  printf '\\%03o\\%03o\\%03o\\%03o' $(($1 & 255)) $(($1 >> 8 & 255)) $(($1 >> 16 & 255)) $(($1 >> 24 & 255))
}

# write_partitions DISK FILE: of lines `size in MiB (0: the rest), type, 80 or 00`. On failure `why` says what went wrong.
write_partitions() {
  disk_mib=$(($(size_of "$1") / MIB))
  start=1 table=''
  # The last line has no end: read says so, and has read it nevertheless.
  while read -r size kind active || [ -n "$size" ]; do
    [ "$size" -gt 0 ] || size=$((disk_mib - start))
    if [ "$size" -le 0 ] || [ $((start + size)) -gt "$disk_mib" ]; then
      why="the partitions do not fit: $1 has $disk_mib MiB"
      return 1
    fi
    table="$table\\$(printf '%03o' "0x$active")\\376\\377\\377\\$(printf '%03o' "0x$kind")\\376\\377\\377"
    table="$table$(little_endian $((start * SECTORS_A_MIB)))$(little_endian $((size * SECTORS_A_MIB)))"
    start=$((start + size)) size=''
  done <"$2"
  {
    head -c 446 /dev/zero
    # shellcheck disable=SC2059 # the table is a format: bytes in octal
    printf "$table"
    head -c 64 /dev/zero
  } | head -c 510 >"$WORK/table"
  printf '\125\252' >>"$WORK/table"
  writes_to "$1"
  if ! dd if="$WORK/table" of="$1" bs=512 count=1 conv=notrunc 2>/dev/null; then
    why="$1 cannot be written"
    return 1
  fi
  sync
  [ ! -b "$1" ] || blockdev --rereadpt "$1"
}

# partition_of DISK NUMBER: /dev/sda1, /dev/nvme0n1p1.
partition_of() {
  case "$1" in *[0-9]) echo "$1p$2" ;; *) echo "$1$2" ;; esac
}
