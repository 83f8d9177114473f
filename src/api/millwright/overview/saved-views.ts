import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { ServiceImpl } from "@connectrpc/connect";
import type { SavedViewService } from "../../../../contract/millwright/v1/saved_view_pb.js";
import { AppError } from "../../../kernel/errors.ts";
import type { OverviewDeps } from "../../../services/overview/listings.ts";
import { deleteSavedView, listSavedViews, type SavedView, saveView } from "../../../services/overview/saved-views.ts";
import { callerKey } from "../../transport/interceptors.ts";

const viewOf = ({ groupBy, savedAt, ...view }: SavedView) => ({
  ...view,
  groupBy: [...groupBy],
  savedAt: timestampFromDate(savedAt),
});

export const savedViews = (deps: OverviewDeps): ServiceImpl<typeof SavedViewService> => ({
  async listSavedViews({ kind }, { values }) {
    return { views: (await listSavedViews(deps, values.get(callerKey), kind)).map(viewOf) };
  },
  async saveView({ view }, { values }) {
    if (view === undefined) throw new AppError("invalid_argument", "view: is required", { field: "view" });
    return { view: viewOf(await saveView(deps, values.get(callerKey), view)) };
  },
  async deleteSavedView({ kind, name }, { values }) {
    await deleteSavedView(deps, values.get(callerKey), kind, name);
    return {};
  },
});
