import type { ServiceImpl } from "@connectrpc/connect";
import type { ExplainService } from "../../../contract/millwright/v1/explain_pb.js";
import { type ExplainDeps, explain as explainThing } from "../../services/explain/explain.ts";
import { withinReach } from "../../services/explain/within-reach.ts";
import { callerKey } from "../transport/interceptors.ts";
import { explanationOf } from "./explanation-messages.ts";

export const explain = (deps: ExplainDeps): ServiceImpl<typeof ExplainService> => ({
  async explain(request, { values }) {
    return explanationOf(await withinReach(deps, values.get(callerKey), await explainThing(deps, request)));
  },
});
