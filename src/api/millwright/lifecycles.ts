import type { ServiceImpl } from "@connectrpc/connect";
import type { LifecycleService } from "../../../contract/millwright/v1/lifecycle_pb.js";
import type { ServiceDeps } from "../../services/call/deps.ts";
import { getLifecycle, listLifecycles } from "../../services/system/lifecycles.ts";
import { lifecycleOf } from "./lifecycle-messages.ts";

export const lifecycles = (deps: ServiceDeps): ServiceImpl<typeof LifecycleService> => ({
  listLifecycles() {
    return { lifecycles: listLifecycles(deps).map(lifecycleOf) };
  },
  getLifecycle({ kind }) {
    return { lifecycle: lifecycleOf(getLifecycle(deps, kind)) };
  },
});
