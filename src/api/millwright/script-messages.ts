import type { MessageInitShape } from "@bufbuild/protobuf";
import { Script_Origin, type ScriptSchema } from "../../../contract/millwright/v1/script_pb.js";
import type { ScriptView } from "../../services/run/scripts.ts";

const ORIGINS = {
  shipped: Script_Origin.SHIPPED,
  site: Script_Origin.SITE,
} as const satisfies Record<ScriptView["origin"], Script_Origin>;

export const scriptOf = ({ origin, planIds, ...script }: ScriptView): MessageInitShape<typeof ScriptSchema> => ({
  ...script,
  origin: ORIGINS[origin],
  planIds: [...planIds],
});
