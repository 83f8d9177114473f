import type { CommandCall } from "./commands.ts";

const BAD_SETTINGS = 78;

/** `netplan apply`: from now on the machine answers where its files say. */
export function netplan({ args, io, session: { machine } }: CommandCall): number {
  const [verb = ""] = args.filter((arg) => !arg.startsWith("-"));
  if (!["apply", "generate", "try"].includes(verb)) {
    io.error(`netplan: unknown command '${verb}'\n`);
    return 2;
  }
  const problem = verb === "apply" ? machine.applyNetwork() : machine.networkProblem;
  if (problem === undefined) return 0;
  io.error(`${problem}\n`);
  return BAD_SETTINGS;
}

/** As much of `ip` as tells where the machine answers and which way is out. */
export function ip({ args, io, session: { machine } }: CommandCall): number {
  const [what = "", ...rest] = args.filter((arg) => !arg.startsWith("-"));
  const brief = args.some((arg) => /^-br(ief)?$/.test(arg));
  const { addresses } = machine;
  if (what.startsWith("r") && "route".startsWith(what)) {
    const [first] = addresses;
    if (first !== undefined) io.out(`default via ${gatewayOf(first)} dev eth0\n`);
    return 0;
  }
  if (what.startsWith("a") && "address".startsWith(what)) {
    if (!rest.includes("global"))
      io.out(brief ? "lo UNKNOWN 127.0.0.1/8\n" : "1: lo\n    inet 127.0.0.1/8 scope host lo\n");
    const shown = addresses.map((address) => `${address}/8`);
    io.out(
      brief
        ? `eth0 UP ${shown.join(" ")}\n`
        : `2: eth0\n${shown.map((each) => `    inet ${each} scope global eth0\n`).join("")}`,
    );
    return 0;
  }
  if (what === "link") {
    io.out("1: lo: <LOOPBACK,UP>\n2: eth0: <BROADCAST,UP>\n3: eth1: <BROADCAST>\n");
    return 0;
  }
  io.error(`Object "${what}" is unknown, try "ip help".\n`);
  return 1;
}

const gatewayOf = (address: string): string => address.replace(/\d+$/, "254");

export function ping({ args, io, session: { machine, surroundings } }: CommandCall): number {
  const host = args.findLast((arg, index) => !arg.startsWith("-") && !/^-[cWiws]$/.test(args[index - 1] ?? "")) ?? "";
  if (machine.addresses.length > 0 && surroundings.reaches(host)) {
    io.out(`64 bytes from ${host}: icmp_seq=1 ttl=64 time=0.1 ms\n`);
    return 0;
  }
  io.out(`PING ${host}: 1 packets transmitted, 0 received, 100% packet loss\n`);
  return 1;
}
