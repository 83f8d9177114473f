import { RestoreService } from "../../../contract/millwright/v1/restore_pb.js";
import { restore } from "../../api/millwright/restore/restore.ts";
import { partOf } from "../../api/transport/service-parts.ts";
import { type RestoreReviewContext, restoreReviewHandlers } from "../../lifecycles/restore-review/handlers.ts";
import type { RestoreReview } from "../../lifecycles/restore-review/restore-review.ts";
import { explainAnyThing } from "../../services/explain/any-thing.ts";
import { sortParked } from "../../store/restore/parked.ts";
import { restoreReviewStore } from "../../store/restore/reviews.ts";
import { defineThing, type HandlerTools } from "./thing.ts";
import { withContext } from "./with-context.ts";

/** The pause after a restored backup. */
export const restoreReview = defineThing<RestoreReview>({
  store: restoreReviewStore,
  handlers: ({ db, stores }: HandlerTools) =>
    withContext(
      restoreReviewHandlers,
      (): Omit<RestoreReviewContext, "call"> => ({ sort: (id, signal) => sortParked(db, stores, id, signal) }),
    ),
  explain: (deps, id) => explainAnyThing(deps, restoreReviewStore.lifecycle.kind, id, "millwright restore review"),
  methods: ({ services, runs }) => (runs ? [partOf(RestoreService, restore({ ...services, ...runs }))] : []),
  // biome-ignore format: a table is read by its columns
  roles: {
    "millwright.v1.RestoreService/GetRestoreReview":   ["viewer"],
    "millwright.v1.RestoreService/ListParkedWork":     ["viewer"],
    "millwright.v1.RestoreService/SettleParkedWork":   ["admin"],
    "millwright.v1.RestoreService/EndRestoreReview":   ["admin"],
  },
});
