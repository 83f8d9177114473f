-- What the environment that a workflow boots is told beyond kernel, initrd and command line: that it runs steps, or which disk it
-- copies. A column of its own, since versions before this one know neither: they read the workflow as one that boots a kernel.
-- `for` holds the boot that it belongs to, so that what they write in its place counts.
alter table install_workflows add column boot_extra jsonb not null default '{}';
