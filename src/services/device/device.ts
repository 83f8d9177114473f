import { AppError } from "../../kernel/errors.ts";
import type { Thing } from "../../kernel/lifecycle.ts";
import type { DeviceTraits } from "../../store/device/device.ts";
import type { ThingKey, ThingStore } from "../../store/lifecycle/things.ts";
import type { Queryable } from "../../store/postgres/database.ts";
import type { ServiceDeps } from "../call/deps.ts";

/** A device as a request names it. */
export interface DeviceName {
  /** Such as power_shelf. */
  readonly kind: string;
  readonly id: string;
  /** The request's field with the id, for refusals. */
  readonly field: string;
}

/** What is known of a kind of devices, and which one of them is meant. Whether that one exists is not known yet. */
export interface NamedDevice {
  readonly key: ThingKey;
  readonly store: ThingStore;
  readonly traits: DeviceTraits;
}

/** The kinds of devices that this server knows. */
const deviceKinds = ({ stores }: Pick<ServiceDeps, "stores">): string[] =>
  [...stores].flatMap(([kind, { device }]) => (device ? [kind] : [])).sort();

export function kindOfDevice(deps: ServiceDeps, kind: string): Omit<NamedDevice, "key"> {
  const store = deps.stores.get(kind);
  if (store?.device) return { store, traits: store.device };
  const shown = JSON.stringify(kind.slice(0, 80));
  const message = `kind: ${shown} is not a kind of devices; known: ${deviceKinds(deps).join(", ")}`;
  throw new AppError("invalid_argument", message, { field: "kind" });
}

export function nameDevice(deps: ServiceDeps, { kind, id, field }: DeviceName): NamedDevice {
  const { store, traits } = kindOfDevice(deps, kind);
  return { store, traits, key: { kind, id: traits.parseId(id, field) } };
}

export async function findDevice(db: Queryable, { key, traits }: NamedDevice): Promise<Thing> {
  const [device] = await traits.list(db, [key.id]);
  if (!device) throw unknownDevice(traits, key.id);
  return device;
}

export const unknownDevice = ({ noun, command }: Pick<DeviceTraits, "noun" | "command">, id: string): AppError =>
  new AppError("not_found", `${noun} ${id} does not exist`, { next: `millwright ${command} list` });
