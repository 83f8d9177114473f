import { useQuery } from "@tanstack/react-query";
import { useParams } from "@tanstack/react-router";
import { type Node, NodeService } from "../../../../contract/millwright/v1/node_pb.js";
import { ActionBar } from "../../actions/action-bar.tsx";
import { harmless } from "../../api/hostile-text.ts";
import { useLifecycles } from "../../api/lifecycles.ts";
import { topicKey } from "../../api/query-keys.ts";
import { clientOf } from "../../api/services.ts";
import { Age } from "../../parts/age.tsx";
import { Block, Columns, Facts, SmallTable } from "../../parts/blocks.tsx";
import { CopyAs, shellWord } from "../../parts/copy-as.tsx";
import { CopyButton } from "../../parts/copy-button.tsx";
import { ErrorNote } from "../../parts/error-note.tsx";
import { Explanation } from "../../parts/explanation.tsx";
import { PageHead } from "../../parts/page-head.tsx";
import { StateChip } from "../../parts/state-chip.tsx";
import { ThingLink } from "../../parts/thing-link.tsx";
import { Story } from "../../story/story.tsx";
import { actionsOf } from "./install-actions.ts";
import { Progress } from "./progress.tsx";
import { useWorkflows } from "./use-workflows.ts";

/** One install: how far it is, what helps, and what happened. */
export function InstallPage() {
  const { id = "" } = useParams({ strict: false }) as { readonly id?: string };
  const filter = `id="${id.replaceAll('"', "")}"`;
  const { data, error } = useQuery({
    queryKey: topicKey("install", "install", id),
    queryFn: async ({ signal }) => (await clientOf(NodeService).listNodes({ filter }, { signal })).nodes[0] ?? null,
  });
  const { data: lifecycles } = useLifecycles();
  const workflows = useWorkflows();
  if (error !== null) return <ErrorNote error={error} />;
  if (data === undefined) return <PageHead title={id} aside="Reading …" />;
  if (data === null) return <PageHead title={id} aside="There is no such install." />;
  const actions = actionsOf(data, lifecycles?.get("install"), workflows);
  const call = {
    cli: `millwright node show ${shellWord(id)}`,
    method: NodeService.method.listNodes,
    request: { filter },
  };
  return (
    <>
      <PageHead
        title={data.hostname || id}
        aside={
          <>
            <StateChip kind="install" id={id} state={data.state} since={data.stateChangedAt} />
            <Age at={data.stateChangedAt} />
            {data.installationProgress !== undefined && (
              <span>
                <Progress percent={data.installationProgress} />
              </span>
            )}
            <CopyButton text={id} what="the id" />
          </>
        }
        actions={
          <>
            <ActionBar actions={actions} />
            <CopyAs call={call} />
          </>
        }
      />
      <Columns>
        <Block title="Why">
          <Explanation kind="install" id={id} state={data.state} />
        </Block>
        <NodeFacts node={data} />
      </Columns>
      <Steps node={data} />
      <Block title="Story">
        <Story kind="install" id={id} />
      </Block>
    </>
  );
}

function NodeFacts({ node }: { readonly node: Node }) {
  return (
    <Block title="Facts">
      <Facts
        items={[
          ["Machine", <ThingLink key="machine" kind="machine" id={node.id} />],
          [
            "MAC",
            <span key="mac" className="mono">
              {node.macAddress}
            </span>,
          ],
          ["Address", node.ipAddress],
          ["Workflow", node.effectiveWorkflowId],
          ["Group", node.groupId],
          ["Tags", node.tags.join(", ")],
          ["Boots", [node.arch, node.bootMode].filter(Boolean).join(", ")],
          ["Made by", [node.vendor, node.model].filter(Boolean).join(" ")],
          [
            "Serial",
            <span key="serial" className="mono">
              {node.serialNumber}
            </span>,
          ],
          ["Failed attempts", node.installAttempts > 0 && node.installAttempts],
          ["Last error", harmless(node.lastInstallError)],
          ["Seen", node.lastSeenAt && <Age key="seen" at={node.lastSeenAt} ago />],
        ]}
      />
    </Block>
  );
}

function Steps({ node: { installationSteps } }: { readonly node: Node }) {
  if (installationSteps.length === 0) return null;
  return (
    <Block title="Steps">
      <SmallTable
        label="Steps"
        head={["Step", "Kind", "State", { number: "Tries" }, "Says"]}
        rows={installationSteps.map(({ name, type, state, attempts, message }, at) => [
          `${at} ${name}`,
          name,
          type.replaceAll("_", " "),
          state.replaceAll("_", " "),
          attempts > 0 && attempts,
          harmless(message),
        ])}
      />
    </Block>
  );
}
