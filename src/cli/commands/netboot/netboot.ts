import { type Command, Option } from "commander";
import type { Run } from "../../client/session.ts";
import type { DnsmasqCommandOptions, EnvironmentOptions } from "./write.ts";

const load = () => import("./write.ts");

const DNSMASQ_EXAMPLES = `
Examples:
  millwright netboot dnsmasq --interface eno2 --range 10.10.0.100,10.10.0.200 --boot-url http://10.10.0.1:8080 > /etc/dnsmasq.d/millwright.conf
  millwright netboot dnsmasq --interface eno2 --proxy 10.10.0.0 --boot-url http://10.10.0.1:8080`;

const ENVIRONMENT_EXAMPLES = `
Example:
  millwright netboot environment --kernel /boot/vmlinuz-6.1.0-50-amd64 --busybox /bin/busybox \\
    --modules /lib/modules/6.1.0-50-amd64 --out /srv/millwright/environment`;

/** What machines need to boot from the network into Millwright. */
export function addNetbootCommands(program: Command, run: Run): void {
  const netboot = program.command("netboot").description("what a network needs so that machines boot into Millwright");
  netboot
    .command("dnsmasq")
    .description("write a dnsmasq configuration: DHCP, TFTP for iPXE, and this server's boot scripts")
    .requiredOption("--interface <name>", "the interface towards the machines; dnsmasq serves no other")
    .option("--range <first,last[,mask]>", "give out these addresses")
    .option("--proxy <subnet[,mask]>", "another DHCP server gives out addresses; serve only the boot file")
    .option(
      "--boot-url <url>",
      "where machines reach the server (its boot.listen, if that is set); the server of this command line when left out",
    )
    .option("--lease <time>", "how long an address is given for", "1h")
    .option("--router <address>", "the router that DHCP announces; none when left out")
    .option("--dns <address...>", "the name servers that DHCP announces; none when left out")
    .option("--tftp-root <dir>", "where iPXE's programs lie", "/usr/lib/ipxe")
    .addOption(new Option("--uefi <file>", "iPXE for UEFI: ipxe.efi has its own drivers").default("snponly.efi"))
    .option("--arm64 <file>", "iPXE for 64-bit ARM; such machines are not booted when left out")
    .option("--http-boot <path>", "also boot UEFI over HTTP: where the server has iPXE, like /files/ipxe.efi")
    .option("--no-ra", "send no router advertisements")
    .option("--out <file>", "write to this file, not to standard output")
    .addHelpText("after", DNSMASQ_EXAMPLES)
    .action((options: DnsmasqCommandOptions) =>
      run(async (session) => (await load()).writeDnsmasqFile(session, options)),
    );
  netboot
    .command("environment")
    .description("make the kernel and initrd that install images and erase disks")
    .requiredOption("--kernel <file>", "a Linux kernel")
    .requiredOption("--busybox <file>", "a busybox that needs no libraries")
    .option("--modules <dir...>", "directories with the kernel's modules: drivers that it has not built in")
    .option("--module <name...>", "take these modules, and what they need; those of usual servers when left out")
    .requiredOption("--out <dir>", "directory for vmlinuz and initrd: one that the server serves (install.files_dir)")
    .addHelpText("after", ENVIRONMENT_EXAMPLES)
    .action((options: EnvironmentOptions) => run(async (session) => (await load()).writeEnvironment(session, options)));
}
