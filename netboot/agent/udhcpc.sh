#!/bin/sh
# Called by udhcpc with what the DHCP server gave.
case "$1" in
  deconfig) ip link set "$interface" up ;;
  bound | renew)
    ifconfig "$interface" "$ip" netmask "${subnet:-255.255.255.0}"
    while ip route del default dev "$interface" 2>/dev/null; do :; done
    for each in ${router:-}; do
      ip route add default via "$each" dev "$interface"
      break
    done
    : >/etc/resolv.conf
    for each in ${dns:-}; do echo "nameserver $each" >>/etc/resolv.conf; done
    ;;
esac
