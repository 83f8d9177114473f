import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { hostKeyFingerprint } from "../../terminal/host-key.ts";

const isObject = (value: JsonValue | undefined): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** Facts by their names in the journal, as people call them. What is not here is called by its own name. */
const NAMES: { readonly [fact: string]: string } = {
  powerState: "power",
  bmcFirmware: "BMC firmware",
  capacityWatts: "capacity",
  certificateFingerprint: "certificate",
  powerSupplies: "power supplies",
  residue: "left behind",
  macs: "MAC addresses",
  sshHostKey: "installed SSH host key",
  sshHostKeySeen: "first seen SSH host key",
};
const UNITS: { readonly [fact: string]: string } = { capacityWatts: " W", voltage: " V" };

/** "power on → off, health ok → warning": what was read again, and what it was before where that is known. */
export function factsText(data: JsonObject): string {
  const { facts, was } = data;
  if (!isObject(facts)) return "";
  const before = isObject(was) ? was : {};
  return Object.entries(facts)
    .map(([name, now]) => factText(name, before[name], now))
    .filter((text) => text !== "")
    .join(", ");
}

/** The node of a machine that is kept out of use while it is in maintenance. */
function cordonText(before: JsonValue | undefined, now: JsonValue): string {
  // Nameless is what a script may have cordoned, and nobody knows before its node was asked.
  const isNameless = (value: JsonValue | undefined) => isObject(value) && value.node === "";
  if (isNameless(now)) return "";
  if (isNameless(before)) return "nothing of ours is left cordoned";
  return isObject(now) ? `node ${String(now.node)} is to be cordoned` : "its node is in use again";
}

/** Where the machine serves. What was not known before is not worth a word when it is not known now either. */
function clusterText(before: JsonValue | undefined, now: JsonValue): string {
  if (typeof now === "string") return `it is in cluster ${now}`;
  return typeof before === "string" ? `it is no longer in cluster ${before}` : "";
}

/** A network change gave the machine another address, until its owner says where it is. */
function movedText(before: JsonValue | undefined, now: JsonValue): string {
  if (isObject(now)) return `SSH answers at ${String(now.to)}`;
  return isObject(before) ? "SSH answers where its owner says" : "";
}

/** How steps stand, and how often they failed. When a pass is due, and by whom, is for the engine. */
function stepsText(before: JsonValue | undefined, now: JsonValue): string {
  const partsOf = (value: JsonValue | undefined) => (Array.isArray(value) ? value.filter(isObject) : []);
  const old = new Map(partsOf(before).map((step) => [step.name, step]));
  return partsOf(now)
    .flatMap((step) => {
      const earlier = old.get(step.name ?? "");
      const state = earlier?.state !== step.state ? [`${String(step.name)} ${String(step.state)}`] : [];
      const failed = Number(step.retryCount ?? 0);
      const more = failed > Number(earlier?.retryCount ?? 0) ? [`${String(step.name)}: ${failed} failed so far`] : [];
      return [...state, ...more];
    })
    .join(", ");
}

function factText(fact: string, before: JsonValue | undefined, now: JsonValue): string {
  if (fact === "cordoned") return cordonText(before, now);
  if (fact === "joinedCluster") return clusterText(before, now);
  if (fact === "locatorLit") return now === true ? "its locator may be lit" : "its locator is out";
  if (fact === "sshMoved") return movedText(before, now);
  if (fact === "offOnPurpose")
    return isObject(now) ? "it is off on purpose" : isObject(before) ? "it is no longer off on purpose" : "";
  if (fact === "cancelRequest") return isObject(now) ? `cancel requested by ${String(now.by)}` : "";
  if (fact === "steps") return stepsText(before, now);
  // Not known before either: nothing happened that anybody could have seen.
  if (now === null && (before === undefined || before === null)) return "";
  const name = NAMES[fact] ?? spoken(fact);
  if (Array.isArray(now)) return listText(name, Array.isArray(before) ? before : [], now);
  if (isObject(now)) return `${name} changed`;
  const textOf = (value: string) => (fact.startsWith("sshHostKey") ? hostKeyFingerprint(value) : short(value));
  const shown = (value: JsonValue) => (value === null ? "unknown" : `${textOf(String(value))}${UNITS[fact] ?? ""}`);
  return before === undefined || isObject(before) || Array.isArray(before)
    ? `${name} ${shown(now)}`
    : `${name} ${shown(before)} → ${shown(now)}`;
}

/** Of parts that have names, those that differ and in what. */
function listText(name: string, before: readonly JsonValue[], now: readonly JsonValue[]): string {
  if (now.every((each) => typeof each === "string"))
    return now.length === 0 ? `${name}: nothing` : `${name}: ${now.join("; ")}`;
  const byName = (list: readonly JsonValue[]) =>
    new Map(list.filter(isObject).map((part) => [String(part.name ?? ""), part]));
  const [old, fresh] = [byName(before), byName(now)];
  if (old.size === 0 || fresh.has("") || old.has("")) return `${name}: ${now.length}`;
  const changes = [...fresh].flatMap(([part, values]) => {
    const earlier = old.get(part);
    if (!earlier) return [`${part} added`];
    return Object.entries(values)
      .filter(([field, value]) => JSON.stringify(earlier[field]) !== JSON.stringify(value))
      .map(([field, value]) => `${part} ${partText(field, earlier[field] ?? null, value)}`);
  });
  const gone = [...old.keys()].filter((part) => !fresh.has(part)).map((part) => `${part} gone`);
  return [...changes, ...gone].join(", ") || `${name} in another order`;
}

function partText(field: string, before: JsonValue, now: JsonValue): string {
  const shown = (value: JsonValue) => (value === null ? "unknown" : short(String(value)));
  if (field === "on") return `${onOff(before)} → ${onOff(now)}`;
  return `${spoken(field)} ${shown(before)} → ${shown(now)}`;
}

const onOff = (value: JsonValue): string => (value === null ? "unknown" : value === true ? "on" : "off");

/** operation_completed, lastError → operation completed, last error. */
export const spoken = (word: string): string =>
  word
    .replace(/(?<=[a-z0-9])(?=[A-Z])/g, " ")
    .replaceAll("_", " ")
    .toLowerCase();

/** Fingerprints and the like are for `show`. */
const short = (text: string): string => (text.length > 40 ? `${text.slice(0, 12)}…` : text);
