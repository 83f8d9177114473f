import type { MachineRecord } from "./machine-record.ts";

/** Which machines there are, and by what they are told apart: looked up, in place of going through all of them. */
export class KnownMachines {
  readonly #machines = new Map<string, Pick<MachineRecord, "hostname" | "interfaces">>();
  readonly #byHostname = new Map<string, string>();
  readonly #byMac = new Map<string, string>();

  systemIds(): readonly string[] {
    return [...this.#machines.keys()];
  }

  byHostname(hostname: string): string | undefined {
    return this.#byHostname.get(hostname);
  }

  byMac(mac: string): string | undefined {
    return this.#byMac.get(mac);
  }

  put({ systemId, hostname, interfaces }: MachineRecord): void {
    this.#forgetNames(systemId);
    this.#machines.set(systemId, { hostname, interfaces });
    this.#byHostname.set(hostname, systemId);
    for (const { mac } of interfaces) this.#byMac.set(mac, systemId);
  }

  remove(systemId: string): void {
    this.#forgetNames(systemId);
    this.#machines.delete(systemId);
  }

  /** A name that somebody else has by now is theirs. */
  #forgetNames(systemId: string): void {
    const known = this.#machines.get(systemId);
    if (known === undefined) return;
    if (this.#byHostname.get(known.hostname) === systemId) this.#byHostname.delete(known.hostname);
    for (const { mac } of known.interfaces) if (this.#byMac.get(mac) === systemId) this.#byMac.delete(mac);
  }
}
