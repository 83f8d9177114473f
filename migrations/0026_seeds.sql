-- What the installer of an image reads to learn what to install. Null: nothing but the address of its medium.
alter table images add column seed text check (seed in ('nocloud', 'autoinstall', 'kickstart', 'ignition'));

-- What plans name as cloud_init_ref. A run has a copy of its own, among the secrets.
create table cloud_init_documents (
  name       text collate "C" primary key,
  content    text not null,
  created_at timestamptz not null default now(),
  created_by text not null
);

-- The two names of plan/repave-join.
insert into cloud_init_documents (name, content, created_by) values ('cloud-init/worker-node',
'#cloud-config
# What the installed system needs before it can join a cluster.
package_update: true
packages: [containerd, socat, conntrack, ebtables]
write_files:
  - path: /etc/modules-load.d/kubernetes.conf
    content: |
      overlay
      br_netfilter
  - path: /etc/sysctl.d/90-kubernetes.conf
    content: |
      net.ipv4.ip_forward = 1
      net.bridge.bridge-nf-call-iptables = 1
runcmd:
  - [modprobe, overlay]
  - [modprobe, br_netfilter]
  - [sysctl, --system]
', 'millwright');
insert into install_workflows (id, name, description, os_family, architecture, boot_mode, install_method, boot, created_by)
select 'pxe-ubuntu-22.04', 'Ubuntu 22.04 (pxe-ubuntu-22.04)',
  'Ubuntu 22.04 by autoinstall: put vmlinuz, initrd and live-server.iso of the release into ubuntu-22.04 below install.files_dir',
  'linux', 'x86_64', 'any', 'kernel',
  '{"kernel_url": "/files/ubuntu-22.04/vmlinuz", "initrd_url": "/files/ubuntu-22.04/initrd",
    "cmdline": "ip=dhcp url=${server}/files/ubuntu-22.04/live-server.iso autoinstall ds=nocloud-net;s=${seed}"}'::jsonb,
  'millwright'
where not exists (select 1 from install_workflows where is_active and name = 'Ubuntu 22.04 (pxe-ubuntu-22.04)')
on conflict do nothing;

-- That the installer of a run's installation has begun, as it said itself: {order, at}.
alter table runs add column installer_seen jsonb;
