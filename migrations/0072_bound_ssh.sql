-- As 0071, for SSH keys of machines and passwords of NVOS: an unbound one whose address changes is bound to nowhere.
create function note_machine_ssh_moved() returns trigger language plpgsql as $$
begin
  perform move_leaves_credentials('ssh/' || new.id);
  return null;
end $$;
create trigger machines_ssh_moved after update on machines for each row
  when ((old.ssh_endpoint, old.jump_hosts) is distinct from (new.ssh_endpoint, new.jump_hosts))
  execute function note_machine_ssh_moved();

create function note_nvos_moved() returns trigger language plpgsql as $$
begin
  perform move_leaves_credentials('nvos/' || new.bmc_mac);
  return null;
end $$;
create trigger switches_nvos_moved after update on switches for each row
  when ((old.nvos_address, old.bmc_port) is distinct from (new.nvos_address, new.bmc_port))
  execute function note_nvos_moved();
create trigger expected_switches_nvos_moved after update on expected_switches for each row
  when ((old.nvos_address, old.bmc_port) is distinct from (new.nvos_address, new.bmc_port))
  execute function note_nvos_moved();
