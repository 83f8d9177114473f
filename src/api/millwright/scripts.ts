import type { ServiceImpl } from "@connectrpc/connect";
import type { ScriptService } from "../../../contract/millwright/v1/script_pb.js";
import { getScript, listScripts, type ScriptDeps } from "../../services/run/scripts.ts";
import { scriptOf } from "./script-messages.ts";

export const scripts = (deps: ScriptDeps): ServiceImpl<typeof ScriptService> => ({
  async listScripts() {
    return { scripts: (await listScripts(deps)).map(scriptOf) };
  },
  async getScript({ ref }) {
    const { text, ...script } = await getScript(deps, ref);
    return { script: scriptOf(script), text };
  },
});
