import { z } from "zod";
import { AppError } from "../../kernel/errors.ts";
import type { Caller } from "../../services/call/caller.ts";
import type { ServiceDeps } from "../../services/call/deps.ts";
import { createRackFirmware } from "../../services/rack-firmware/rack-firmware.ts";

const catalogueSchema = z.array(z.object({ hardware_type: z.string(), config: z.record(z.string(), z.unknown()) }));

/** What the files of a catalogue that asks for no token are fetched with. */
const NO_TOKEN = "NOAUTH";

/** The firmware that a simulated site has for its racks. The first record of each kind, which its devices came with, becomes the default. */
export async function recordSimulatedFirmware(deps: ServiceDeps, caller: Caller, controlUrl: string): Promise<void> {
  const answer = await fetch(new URL("/firmware/catalogue", controlUrl));
  if (!answer.ok) return;
  for (const { hardware_type, config } of catalogueSchema.parse(await answer.json())) {
    const record = { configJson: JSON.stringify(config), token: NO_TOKEN, hardwareType: hardware_type };
    await createRackFirmware(deps, caller, record).catch((error: unknown) => {
      if (!(error instanceof AppError) || error.kind !== "already_exists") throw error;
    });
  }
}
