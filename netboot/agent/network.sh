# The interface that the machine booted with has the address that the boot script named.

interface_with() {
  for each in /sys/class/net/*; do
    if [ "$(cat "$each/address")" = "$1" ]; then
      echo "${each##*/}"
      return 0
    fi
  done
  return 1
}

# bring_network_up MAC
bring_network_up() {
  seconds=0
  until interface=$(interface_with "$1"); do
    if [ "$seconds" -ge 30 ]; then
      say "no interface has the address $1: is its driver in the environment?"
      return 1
    fi
    sleep 1
    seconds=$((seconds + 1))
  done
  ip link set "$interface" up
  # It stays to renew the lease.
  udhcpc -i "$interface" -n -t 15 -T 2 -s "$HERE/udhcpc.sh" || return 1
  ADDRESS=$(ip -4 addr show dev "$interface" | sed -n 's/^ *inet \([0-9.]*\).*/\1/p' | head -n 1)
}
