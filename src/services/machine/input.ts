import { isFingerprint, isHostKey } from "../../capabilities/host-key.ts";
import { AppError } from "../../kernel/errors.ts";
import { parsePortMac, parseRackId } from "../../kernel/ids.ts";
import { isPrintable } from "../../kernel/printable.ts";
import { bmcPortOf, bmcProtocolOf, parseEndpoint, parseMachineAddress } from "../../lifecycles/machine/endpoint.ts";
import { BMC_PROTOCOLS, MACHINE_PROVIDERS } from "../../lifecycles/machine/machine.ts";
import type { Identity } from "../../store/machine/identities.ts";
import type { SpecRow } from "../../store/machine/machines.ts";

/** What an owner says about a machine, as it was handed in; empty texts are "not given". */
export interface SpecInput {
  readonly provider: string;
  readonly serial: string;
  readonly macAddresses: readonly string[];
  readonly rack: string;
  readonly slot: string;
  readonly location: string;
  readonly customerId: string;
  readonly targetClusterRef: string;
  readonly sshEndpoint: string;
  readonly sshHostKey: string;
  readonly jumpHosts: readonly { readonly endpoint: string; readonly hostKey: string; readonly username: string }[];
  readonly bmcEndpoint: string;
  readonly bmcProtocol: string;
  readonly bmcTlsTrust: string;
}

/** The spec as its row has it, and what in it no other machine may have. */
export interface CheckedSpec {
  readonly row: Omit<SpecRow, "labels">;
  readonly identities: readonly Identity[];
}

const DEFAULT_PROVIDER = "datacenter";
const TRUSTS = ["ca", "pin", "off"] as const;
const MOST = { macs: 64, jumpHosts: 8, labels: 64, labelKey: 128, labelValue: 256, text: 256, hostKey: 4_096 } as const;

/** The first thing that is wrong is refused, by the name that the field has in the contract. */
export function checkSpec(input: SpecInput, providers: readonly string[] = MACHINE_PROVIDERS): CheckedSpec {
  const at = (name: string) => `machine.spec.${name}`;
  const provider = checkWord(input.provider === "" ? DEFAULT_PROVIDER : input.provider, providers, at("provider"));
  const macs = checkMacs(input.macAddresses, at("mac_addresses"));
  const serial = optionalText(input.serial, at("serial"));
  const ssh = checkSsh(input, at);
  const bmc = checkBmc({ ...input, provider }, at);
  return {
    row: {
      provider,
      serial,
      macs,
      rack: input.rack === "" ? null : parseRackId(input.rack, at("rack")),
      slot: optionalText(input.slot, at("slot")),
      location: optionalText(input.location, at("location")),
      customer_id: optionalText(input.customerId, at("customer_id")),
      target_cluster: optionalText(input.targetClusterRef, at("target_cluster_ref")),
      ...ssh,
      ...bmc.row,
    },
    identities: [
      ...macs.map((value): Identity => ({ kind: "mac", value })),
      ...(serial === null ? [] : [{ kind: "serial", value: serial } as const]),
      ...(bmc.identity === undefined ? [] : [{ kind: "bmc", value: bmc.identity } as const]),
    ],
  };
}

type At = (name: string) => string;

function checkMacs(texts: readonly string[], field: string): string[] {
  if (texts.length > MOST.macs) throw refusal(field, `at most ${MOST.macs} addresses`);
  return [...new Set(texts.map((text, index) => parsePortMac(text, `${field}[${index}]`)))];
}

function checkSsh({ sshEndpoint, sshHostKey, jumpHosts }: SpecInput, at: At) {
  if (sshEndpoint !== "") parseEndpoint(sshEndpoint, at("ssh_endpoint"));
  else if (jumpHosts.length > 0) throw refusal(at("jump_hosts"), "require ssh_endpoint");
  if (jumpHosts.length > MOST.jumpHosts) throw refusal(at("jump_hosts"), `at most ${MOST.jumpHosts} hosts`);
  return {
    ssh_endpoint: sshEndpoint === "" ? null : sshEndpoint,
    ssh_host_key: checkHostKey(sshHostKey, at("ssh_host_key")),
    jump_hosts: jumpHosts.map(({ endpoint, hostKey, username }, index) => {
      const of = (name: string) => `${at("jump_hosts")}[${index}].${name}`;
      parseEndpoint(endpoint, of("endpoint"));
      const key = checkHostKey(hostKey, of("host_key"));
      if (key === null)
        throw refusal(of("host_key"), "is required: a jump host with an unknown key could intercept the connection");
      return { endpoint, host_key: key, username: optionalText(username, of("username")) };
    }),
  };
}

function checkBmc({ provider, bmcEndpoint, bmcProtocol, bmcTlsTrust }: SpecInput, at: At) {
  const protocol = bmcProtocol === "" ? null : checkWord(bmcProtocol, BMC_PROTOCOLS, at("bmc_protocol"));
  if (protocol !== null && provider !== protocol && BMC_PROTOCOLS.some((each) => each === provider))
    throw refusal(at("bmc_protocol"), `must be ${provider} or empty with provider ${provider}, got ${shown(protocol)}`);
  const row = {
    bmc_endpoint: bmcEndpoint === "" ? null : bmcEndpoint,
    bmc_protocol: protocol,
    bmc_trust: bmcTlsTrust === "" ? ("pin" as const) : checkWord(bmcTlsTrust, TRUSTS, at("bmc_tls_trust")),
  };
  if (bmcEndpoint === "") return { row };
  const bmc = parseMachineAddress(provider, bmcEndpoint, at("bmc_endpoint"));
  const spoken = bmcProtocolOf({ provider, bmc: { protocol } });
  if (provider !== "ironic" && spoken === "ipmi" && bmc.path !== undefined)
    throw refusal(
      at("bmc_endpoint"),
      "names a computer system, which only Redfish has; over IPMI a BMC is one machine",
    );
  const port = bmcPortOf({ ...bmc, protocol: spoken });
  return { row, identity: `${bmc.address.toLowerCase()} ${port}${bmc.path ?? ""}` };
}

function checkHostKey(text: string, field: string): string | null {
  if (text === "") return null;
  if (text.length <= MOST.hostKey && (isHostKey(text) || isFingerprint(text))) return text;
  throw refusal(
    field,
    "is neither a whole host key as in known_hosts (like ssh-ed25519 AAAA…) nor its SHA256: fingerprint",
  );
}

export function checkLabels(
  labels: Readonly<Record<string, string>>,
  field = "machine.labels",
): Record<string, string> {
  const entries = Object.entries(labels);
  if (entries.length > MOST.labels) throw refusal(field, `at most ${MOST.labels} labels`);
  for (const [key, value] of entries) {
    if (key === "" || key.length > MOST.labelKey || !isPrintable(key))
      throw refusal(field, `the key ${shown(key)} must have 1 to ${MOST.labelKey} printable characters`);
    if (value.length > MOST.labelValue || !isPrintable(value))
      throw refusal(field, `the value of ${shown(key)} must have at most ${MOST.labelValue} printable characters`);
  }
  return Object.fromEntries(entries);
}

function optionalText(text: string, field: string): string | null {
  if (text === "") return null;
  if (text.length <= MOST.text && isPrintable(text)) return text;
  throw refusal(field, `must have at most ${MOST.text} printable characters`);
}

function checkWord<const W extends string>(text: string, words: readonly W[], field: string): W {
  const word = words.find((each) => each === text);
  if (word !== undefined) return word;
  throw refusal(field, `must be one of ${words.join(", ")}, got ${shown(text)}`);
}

const shown = (text: string): string => JSON.stringify(text.slice(0, 80));
const refusal = (field: string, why: string): AppError =>
  new AppError("invalid_argument", `${field}: ${why}`, { field });
