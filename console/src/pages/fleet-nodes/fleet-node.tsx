import { useQuery } from "@tanstack/react-query";
import { useParams } from "@tanstack/react-router";
import { type FleetNodeDetail, FleetNodeService } from "../../../../contract/millwright/v1/fleet_node_pb.js";
import { topicKey } from "../../api/query-keys.ts";
import { clientOf } from "../../api/services.ts";
import { Age } from "../../parts/age.tsx";
import { Block, Columns, Facts, SmallTable } from "../../parts/blocks.tsx";
import { CopyAs, shellWord } from "../../parts/copy-as.tsx";
import { CopyButton } from "../../parts/copy-button.tsx";
import { ErrorNote } from "../../parts/error-note.tsx";
import { PageHead } from "../../parts/page-head.tsx";
import { StateChip } from "../../parts/state-chip.tsx";
import { ThingLink } from "../../parts/thing-link.tsx";
import { useMe } from "../../shell/me.tsx";
import { Story } from "../../story/story.tsx";
import { NextAction } from "./next-action.tsx";

/** The lifecycle detail view: the node, its job, what MAAS shows, its agent, and what to do next. */
export function FleetNodePage() {
  const { id = "" } = useParams({ strict: false }) as { readonly id?: string };
  const { data, error } = useQuery({
    queryKey: topicKey("fleet_node", "fleet_node", id),
    queryFn: async ({ signal }) => (await clientOf(FleetNodeService).getFleetNode({ node: id }, { signal })).node,
  });
  const node = data?.node;
  if (error !== null) return <ErrorNote error={error} />;
  if (data === undefined || node === undefined) return <PageHead title={id} aside="Reading …" />;
  const call = {
    cli: `millwright fleet show ${shellWord(id)}`,
    method: FleetNodeService.method.getFleetNode,
    request: { node: id },
  };
  return (
    <>
      <PageHead
        title={node.hostname || id}
        aside={
          <>
            <StateChip kind="fleet_node" id={id} state={node.state} since={node.stateSince} />
            <Age at={node.stateSince} />
            <CopyButton text={id} what="the id" />
          </>
        }
        actions={<CopyAs call={call} />}
      />
      {node.quarantineReason !== "" && <p>{node.quarantineReason}</p>}
      <NextAction detail={data} />
      <Columns>
        <Job detail={data} />
        <NodeFacts detail={data} />
      </Columns>
      <Tasks id={id} />
      <Block title="Story">
        <Story kind="fleet_node" id={id} />
      </Block>
    </>
  );
}

function Job({ detail: { job } }: { readonly detail: FleetNodeDetail }) {
  if (job === undefined) return null;
  const {
    runId,
    type,
    mode,
    state,
    stage,
    attempt,
    round,
    stageRetries,
    failureClass,
    message,
    startedBy,
    createdAt,
    finishedAt,
  } = job;
  return (
    <Block title="Job">
      <Facts
        items={[
          ["Job", [type, mode].filter(Boolean).join(", ")],
          ["State", state],
          [
            "Stage",
            stage &&
              `${stage}${stageRetries > 0 ? `, ${stageRetries} failed tries` : ""}${round > 1 ? `, round ${round}` : ""}`,
          ],
          ["Attempt", attempt > 1 && attempt],
          ["Failed", failureClass],
          ["Says", message],
          ["Run", <ThingLink key="run" kind="run" id={runId} />],
          [
            "Begun",
            <>
              by {startedBy}, <Age at={createdAt} ago />
            </>,
          ],
          ["Ended", finishedAt && <Age at={finishedAt} ago />],
        ]}
      />
    </Block>
  );
}

function NodeFacts({ detail: { node, maas, agent } }: { readonly detail: FleetNodeDetail }) {
  if (node === undefined) return null;
  return (
    <Block title="Facts">
      <Facts
        items={[
          ["Site", node.site],
          ["Profile", node.profile],
          ["SKU", node.sku],
          ["Brought up by", node.mode],
          ["Machine", node.machineId !== "" && <ThingLink key="machine" kind="machine" id={node.machineId} />],
          [
            "BMC",
            <span key="bmc" className="mono">
              {node.ipmiIp}
            </span>,
          ],
          ["In MAAS", node.systemId],
          [
            "MAAS shows",
            maas && (
              <>
                {maas.statusName || maas.state}{" "}
                <span className="dim">
                  seen <Age at={maas.seenAt} ago />
                </span>
              </>
            ),
          ],
          [
            "Agent",
            agent && (
              <>
                {[agent.health, agent.version, agent.message].filter(Boolean).join(", ")}{" "}
                <span className="dim">
                  heard <Age at={agent.seenAt} ago />
                </span>
              </>
            ),
          ],
          [
            "On record",
            <>
              for <Age at={node.createdAt} />, by {node.createdBy}
            </>,
          ],
        ]}
      />
    </Block>
  );
}

function Tasks({ id }: { readonly id: string }) {
  const { may } = useMe();
  const isOffered = may.has("millwright.v1.FleetNodeService/ListNodeTasks");
  const { data } = useQuery({
    queryKey: topicKey("fleet_node", "tasks", id),
    queryFn: async ({ signal }) =>
      (await clientOf(FleetNodeService).listNodeTasks({ node: id, pageSize: 20 }, { signal })).tasks,
    enabled: isOffered,
  });
  if (data === undefined || data.length === 0) return null;
  return (
    <Block title="Tasks of the agent">
      <SmallTable
        label="Tasks of the agent"
        head={["Task", "State", "Since", "Says", "Run"]}
        rows={data.map(({ id: task, taskType, state, stateSince, message, runId }) => [
          task,
          taskType,
          <StateChip key="state" kind="fleet_task" id={task} state={state} since={stateSince} />,
          <Age key="since" at={stateSince} />,
          message,
          runId !== "" && <ThingLink key="run" kind="run" id={runId} />,
        ])}
      />
    </Block>
  );
}
