# Writes an image to a disk. The digest is checked on the way in, and once more by reading back what is on the disk. The first
# MiB, which makes a disk bootable, is written last: an image that is not what it should be never boots.

MIB=1048576
PIECE_MIB=${PIECE_MIB:-16}
RETRY_PAUSE=${RETRY_PAUSE:-2}

# install_image URL DIGEST DISK: on failure `why` says what went wrong.
install_image() {
  url=$1 digest=${2#sha256:} disk=$3
  [ -w "$disk" ] || wait_for_disks
  [ -n "$disk" ] || disk=$(first_disk)
  if [ ! -w "$disk" ]; then
    why="there is no disk ${disk:-at all}"
    return 1
  fi
  say "writes $url to $disk"
  mkfifo "$WORK/stream"
  sha256sum <"$WORK/stream" >"$WORK/digest" &
  hashing=$!
  exec 3>"$WORK/stream"
  copied=0
  case "$url" in
    http://*) copy_in_pieces || copied=1 ;;
    *) copy_at_once || copied=1 ;;
  esac
  exec 3>&-
  wait "$hashing"
  rm -f "$WORK/stream"
  [ "$copied" -eq 0 ] || return 1
  # Of another machine's disk there may be no digest: then what arrived is read back, and compared with itself.
  [ -n "$digest" ] || digest=$(cut -d ' ' -f 1 "$WORK/digest")
  if [ "$(cut -d ' ' -f 1 "$WORK/digest")" != "$digest" ]; then
    why="the image has the digest sha256:$(cut -d ' ' -f 1 "$WORK/digest"), not sha256:$digest"
    return 1
  fi
  if ! dd if="$WORK/first" of="$disk" bs="$MIB" conv=notrunc 2>/dev/null; then
    why="$disk cannot be written"
    return 1
  fi
  read_back
}

read_back() {
  forget_cached "$disk"
  progress 95
  found=$(head -c "$total" "$disk" | sha256sum | cut -d ' ' -f 1)
  if [ "$found" = "$digest" ]; then
    # The partitions of the image, for the steps behind it.
    [ ! -b "$disk" ] || blockdev --rereadpt "$disk" 2>/dev/null
    return 0
  fi
  # What cannot be trusted must not boot.
  dd if=/dev/zero of="$disk" bs="$MIB" count=1 conv=notrunc 2>/dev/null
  why="$disk does not hold what was written to it"
  return 1
}

copy_in_pieces() {
  fetch_again "$url" 0 0 || return 1
  total=$whole
  fits "$total" || return 1
  writes_to "$disk"
  offset=0 shown=0
  while [ "$offset" -lt "$total" ]; do
    last=$((offset + PIECE_MIB * MIB - 1))
    [ "$last" -lt "$total" ] || last=$((total - 1))
    fetch_again "$url" "$offset" "$last" || return 1
    cat "$WORK/piece" >&3
    write_piece || return 1
    offset=$((last + 1))
    percent=$((offset * 90 / total / 10 * 10))
    if [ "$percent" -gt "$shown" ]; then
      shown=$percent
      progress "$percent"
    fi
  done
  rm -f "$WORK/piece"
}

# All but the first MiB of the disk.
write_piece() {
  from=0
  if [ "$offset" -eq 0 ]; then
    head -c "$MIB" "$WORK/piece" >"$WORK/first"
    from=1
  fi
  if ! dd if="$WORK/piece" of="$disk" bs="$MIB" skip="$from" seek=$((offset / MIB + from)) conv=notrunc 2>/dev/null; then
    why="$disk cannot be written at byte $offset"
    return 1
  fi
}

fits() {
  [ "$1" -le "$(size_of "$disk")" ] && return 0
  why="the image has $1 bytes, and $disk only $(size_of "$disk")"
  return 1
}

# Over TLS busybox can only read all of it in one go.
copy_at_once() {
  writes_to "$disk"
  wget -q -O - "$url" | tee "$WORK/stream" | {
    dd bs="$MIB" count=1 iflag=fullblock of="$WORK/first" 2>/dev/null
    dd bs="$MIB" seek=1 of="$disk" conv=notrunc 2>"$WORK/told"
  } || {
    why="the image could not be written to $disk"
    return 1
  }
  rest=$(sed -n 's/^\([0-9]*\) bytes.*/\1/p' "$WORK/told")
  total=$(($(size_of "$WORK/first") + ${rest:-0}))
}

# fetch_again URL FIRST LAST: into the file `piece`; a connection that breaks is no reason to begin anew.
fetch_again() {
  fetches=0
  until fetch_range "$1" "$2" "$3"; do
    fetches=$((fetches + 1))
    if [ "$fetches" -ge 10 ]; then
      why="bytes $2 to $3 of the image could not be had: ${status:-no answer}"
      return 1
    fi
    sleep "$RETRY_PAUSE"
  done
}

CR=$(printf '\r')
# fetch_range URL FIRST LAST: busybox's wget takes no answer to a range, so the request is written here.
fetch_range() {
  rest=${1#http://}
  host=${rest%%/*} path=/${rest#*/} port=80 status='' whole=''
  case "$host" in *:[0-9] | *:[0-9][0-9] | *:[0-9][0-9][0-9] | *:[0-9][0-9][0-9][0-9] | *:[0-9][0-9][0-9][0-9][0-9])
    port=${host##*:}
    ;;
  esac
  name=${host%":$port"}
  name=${name#[}
  # Open for both, the pipe never ends: a server may stop answering whoever seems to have hung up.
  [ -p "$WORK/request" ] || mkfifo "$WORK/request"
  exec 4<>"$WORK/request"
  printf 'GET %s HTTP/1.1\r\nHost: %s\r\nRange: bytes=%s-%s\r\nConnection: close\r\n\r\n' "$path" "$host" "$2" "$3" >&4
  timeout 600 nc "${name%]}" "$port" <&4 >"$WORK/answer"
  asked=$?
  exec 4>&-
  [ "$asked" -eq 0 ] || return 1
  header=0
  while IFS= read -r line; do
    header=$((header + ${#line} + 1))
    line=${line%"$CR"}
    case "$line" in
      '') break ;;
      HTTP/*) status=${line#* } ;;
      [Cc]ontent-[Rr]ange:*) whole=${line##*/} ;;
    esac
  done <"$WORK/answer"
  case "$status" in 206*) ;; *) return 1 ;; esac
  tail -c "+$((header + 1))" "$WORK/answer" >"$WORK/piece"
  rm -f "$WORK/answer"
  [ "$(size_of "$WORK/piece")" -eq $(($3 - $2 + 1)) ]
}
