import { type Script, Script_Origin, ScriptService } from "../../../../contract/millwright/v1/script_pb.js";
import { clientOf } from "../../api/services.ts";
import type { Column } from "../../lists/data-table.tsx";
import { WholeList } from "../../lists/whole-list.tsx";
import { ThingLink } from "../../parts/thing-link.tsx";

export const originOf = ({ origin }: Script): string => (origin === Script_Origin.SITE ? "the site" : "Millwright");

const columns: readonly Column<Script>[] = [
  { title: "Script", width: "minmax(150px, 1fr)", cell: ({ ref }) => <ThingLink kind="script" id={ref} /> },
  {
    title: "Does",
    width: "minmax(140px, 3fr)",
    from: "tablet",
    cell: ({ description }) => <span title={description}>{description}</span>,
  },
  { title: "From", width: "92px", cell: originOf },
  { title: "Plans", width: "minmax(90px, 1fr)", from: "desktop", cell: ({ planIds }) => planIds.join(", ") },
];

/** What steps run on machines. */
export const Scripts = () => (
  <WholeList
    title="Scripts"
    noun="script"
    kind="script"
    columns={columns}
    read={async (signal) => (await clientOf(ScriptService).listScripts({}, { signal })).scripts}
    idOf={({ ref }) => ref}
    textOf={({ ref, description, planIds }) => [ref, description, ...planIds].join(" ")}
    cli="millwright script list"
    method={ScriptService.method.listScripts}
    empty="There are no scripts."
  />
);
