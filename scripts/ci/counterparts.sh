# Sourced by .ci/run. Some tests compare with programs that are not ours.
# Each line: how to see that it is there | its Debian packages | for which tests.
counterparts=(
  "has_openssl|openssl|mutual TLS and TLS with certificates that we did not make"
  "has_sshd|openssh-server|an SSH server that we did not write"
  "has_sudo|sudo|accounts over SSH that are not root"
  "has_ansible|ansible-core|playbooks as scripts of steps"
  "has_ipmi|ipmitool openipmi|a BMC that speaks IPMI, and a client for it, that we did not write"
  "has_python_sushy|python3 python3-sushy|a Redfish client that we did not write"
  "has_kubectl|kubernetes-client|a Kubernetes client that we did not write"
  "has_curl|curl|the curl example"
  "has_python_grpc|python3 python3-grpcio python3-protobuf|a gRPC client that we did not write"
  "has_ironic|python3-ironic python3-sushy|OpenStack's Ironic as provider of machines"
  "has_maas_client|golang-go golang-github-juju-gomaasapi-dev|Juju's MAAS client, that we did not write"
  "has_postgres|postgresql|a PostgreSQL that we did not pack, with its own backups"
  "has_pgbouncer|pgbouncer|a pooler in front of PostgreSQL that we did not write"
  "has_dnsmasq|dnsmasq-base|configurations for a DHCP server that we did not write"
  "has_busybox|busybox-static cpio|the environment that installs images and erases disks"
  "has_promtool|prometheus|alert rules in the eyes of Prometheus"
  "has_installer_tools|genisoimage xorriso isolinux syslinux syslinux-common mtools dosfstools dropbear-bin|an installer that is not ours"
  "has_chromium|chromium|the console in a browser"
  "has_virtual_machines|qemu-system-x86 ipxe-qemu ipxe ovmf iproute2|machines that boot from the network"
)
has_openssl() { command -v openssl; }
has_chromium() { test -x /usr/bin/chromium; }
has_promtool() { command -v promtool; }
has_curl() { command -v curl; }
has_kubectl() { command -v kubectl; }
has_ipmi() { command -v ipmitool && command -v ipmi_sim; }
has_maas_client() { command -v go && test -d /usr/share/gocode/src/github.com/juju/gomaasapi; }
has_postgres() { test -x "$(ls -d /usr/lib/postgresql/*/bin/pg_dump | tail -1)"; }
has_pgbouncer() { test -x /usr/sbin/pgbouncer; }
has_dnsmasq() { test -x /usr/sbin/dnsmasq; }
has_busybox() { command -v busybox && command -v cpio; }
has_virtual_machines() {
  command -v qemu-system-x86_64 && command -v ip && test -e /usr/lib/ipxe/qemu/pxe-virtio.rom &&
    test -e /usr/lib/ipxe/snponly.efi && test -e /usr/share/OVMF/OVMF_CODE_4M.fd
}
has_installer_tools() {
  command -v genisoimage && command -v xorriso && command -v syslinux && command -v mcopy && test -x /usr/sbin/mkfs.vfat && test -x /usr/sbin/dropbear &&
    test -e /usr/lib/ISOLINUX/isolinux.bin && test -e /usr/lib/syslinux/modules/bios/ldlinux.c32
}
has_ansible() { command -v ansible-playbook; }
has_sudo() { test -x /usr/bin/sudo; }
has_sshd() { test -x /usr/sbin/sshd; }
has_ironic() { /usr/bin/python3 -c 'import ironic.cmd.singleprocess, sushy'; }
# Debian puts the modules where only its own python3 looks, which need not be the first on PATH.
python_has() {
  local python
  while read -r python; do
    if "$python" -c "import $1"; then return 0; fi
  done < <(type -aP python3)
  return 1
}
has_python_grpc() { python_has "grpc, google.protobuf"; }
has_python_sushy() { python_has sushy; }

# The lines of the counterparts that are not there.
list_missing_counterparts() {
  local counterpart
  for counterpart in "${counterparts[@]}"; do
    "${counterpart%%|*}" >/dev/null 2>&1 || echo "$counterpart"
  done
}

packages_of() {
  local packages=${1#*|}
  echo "${packages%%|*}"
}

can_install_counterparts() { [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null; }

apt_get() { DEBIAN_FRONTEND=noninteractive apt-get -y -o DPkg::Lock::Timeout=300 "$@" </dev/null; }
# shellcheck disable=SC2068 # a counterpart may be several packages
install_packages() { apt_get install --no-install-recommends $@; }

# Debian's kubernetes-client brings /usr/bin/kubectl. Over a kubectl of another origin dpkg stops half-way, and breaks the machine.
debian_kubectl=/usr/bin/kubectl
would_overwrite_kubectl() {
  [[ " $1 " == *" kubernetes-client "* ]] && { [ -e "$debian_kubectl" ] || [ -L "$debian_kubectl" ]; }
}

# The kernel of the machines that boot from the network is downloaded by their tests, and not installed.
knows_kernel() { apt-cache show linux-image-cloud-amd64 >/dev/null 2>&1; }

install_missing_counterparts() {
  local missing=() counterpart packages
  knows_kernel || apt_get update || echo "warning: apt-get update failed"
  while read -r counterpart; do
    packages=$(packages_of "$counterpart")
    if would_overwrite_kubectl "$packages"; then
      echo "not installed over $debian_kubectl, which is there already: $packages"
    else
      missing+=("$packages")
    fi
  done < <(list_missing_counterparts)
  if [ "${#missing[@]}" -eq 0 ]; then return; fi
  echo "installing ${missing[*]}"
  install_packages "${missing[@]}" && return
  apt_get update || echo "warning: apt-get update failed"
  install_packages "${missing[@]}" && return
  # One package that cannot be had must not keep the others away.
  for packages in "${missing[@]}"; do
    install_packages "$packages" || echo "warning: could not be installed: $packages"
  done
}
