import { StepFailure } from "../../../src/kernel/errors.ts";
import type { JsonObject } from "../../../src/kernel/lifecycle.ts";
import { minutes, seconds } from "../../../src/kernel/time/duration.ts";
import { childStep } from "../../../src/runs/children/child-run.ts";
import { defineFanOut } from "../../../src/runs/children/fan-out.ts";
import { collectSteps, defineStepOn, type On } from "../../../src/runs/model/step.ts";
import type { Queryable } from "../../../src/store/postgres/database.ts";
import { uploadFirmware, uploadImage } from "../uploads/upload-step.ts";
import type { Gadget, Rig } from "./rig.ts";

/** The devices, as a provider would reach them. */
export interface GadgetWorld {
  poke(id: string): Promise<void>;
  undo(id: string): Promise<void>;
  read(id: string): Promise<{ readonly pokes: number; readonly held: boolean }>;
}

export function openGadgetWorld(db: Queryable): GadgetWorld {
  const read = async (id: string) => {
    const [row] = await db.query<{ pokes: number; held: boolean; refuses: boolean }>(
      "select pokes, held, refuses from gadget_world where id = $1",
      [id],
    );
    if (!row) throw new StepFailure("target_gone", `nobody answers at ${id}`);
    return row;
  };
  return {
    read,
    async poke(id) {
      if ((await read(id)).refuses) throw new StepFailure("refused_by_device", "it refuses", { facts: { at: "bmc" } });
      await db.query("update gadget_world set pokes = pokes + 1 where id = $1", [id]);
    },
    async undo(id) {
      await db.query("update gadget_world set undone = undone + 1 where id = $1", [id]);
    },
  };
}

export interface OnGadget extends On<Gadget> {
  readonly world: GadgetWorld;
}

const anyPayload = (payload: JsonObject): JsonObject => payload;
type Evidence = { readonly pokes: number };

/** Done when the device has counted one poke more, and lets go of it. */
export const poke = defineStepOn<OnGadget>()({
  kind: "poke",
  needs: [],
  defaults: { timeout: minutes(5), maxRetries: 0 },
  parse: anyPayload,
  before: async ({ target, world }): Promise<Evidence> => ({ pokes: (await world.read(target.id)).pokes }),
  async act({ target, world, log }) {
    await world.poke(target.id);
    log(`poked ${target.id}`);
    return undefined;
  },
  async probe({ target, world, evidence }) {
    const { pokes, held } = await world.read(target.id);
    if (pokes === evidence.pokes) return "not_done";
    return held ? { state: "in_progress", message: "it is held" } : { state: "done", message: `poke ${pokes}` };
  },
  async undo({ target, world }) {
    await world.undo(target.id);
    return undefined;
  },
});

const gadgetsOf = ({ facts }: Rig) => facts.gadgets.map((id) => ({ kind: "gadget", id }));
const base = {
  parse: anyPayload,
  defaults: { timeout: minutes(5) },
  targets: gadgetsOf,
  stepsOn: () => [childStep(poke, {})],
};

/** Pokes all gadgets of a rig, four at a time; each must succeed. */
export const pokeAll = defineFanOut<Rig, JsonObject>({ ...base, kind: "poke_all", atOnce: 4 });
/** Two at a time. */
export const pokeFew = defineFanOut<Rig, JsonObject>({ ...base, kind: "poke_few", atOnce: 2 });
/** Pokes all at once. */
export const pokeTogether = defineFanOut<Rig, JsonObject>({ ...base, kind: "poke_together", atOnce: 100 });
/** Ends with the first failure. */
export const pokeCarefully = defineFanOut<Rig, JsonObject>({
  ...base,
  kind: "poke_carefully",
  atOnce: 2,
  stopsAtFailure: true,
});
/** Is content with half of them. */
export const pokeHalf = defineFanOut<Rig, JsonObject>({
  ...base,
  kind: "poke_half",
  atOnce: 4,
  verdict: ({ succeeded, failed, canceled }) =>
    succeeded.length >= failed.length + canceled.length ? undefined : "too few have succeeded",
});
/** Has little patience. */
export const pokeSoon = defineFanOut<Rig, JsonObject>({
  ...base,
  kind: "poke_soon",
  atOnce: 2,
  defaults: { timeout: seconds(2) },
});

export const rigSteps = collectSteps([
  poke,
  pokeAll,
  pokeFew,
  pokeTogether,
  pokeCarefully,
  pokeHalf,
  pokeSoon,
  uploadImage,
  uploadFirmware,
]);
