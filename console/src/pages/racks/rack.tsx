import { Button } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useParams } from "@tanstack/react-router";
import { useRef, useState } from "react";
import type { Event } from "../../../../contract/millwright/v1/event_pb.js";
import { type Rack, type RackRequest, RackService } from "../../../../contract/millwright/v1/rack_pb.js";
import { Recommended } from "../../actions/recommended.tsx";
import { topicKey } from "../../api/query-keys.ts";
import { clientOf } from "../../api/services.ts";
import { useEvents } from "../../live/live.tsx";
import { Age } from "../../parts/age.tsx";
import { Block, Choice, Columns, Facts, SmallTable } from "../../parts/blocks.tsx";
import { CopyAs, shellWord } from "../../parts/copy-as.tsx";
import { CopyButton } from "../../parts/copy-button.tsx";
import { ErrorNote } from "../../parts/error-note.tsx";
import { PageHead } from "../../parts/page-head.tsx";
import { StateChip } from "../../parts/state-chip.tsx";
import { ThingLink } from "../../parts/thing-link.tsx";
import { useMe } from "../../shell/me.tsx";
import { Story } from "../../story/story.tsx";
import classes from "./elevation.module.css";
import { Elevation } from "./elevation.tsx";
import { Maintenance } from "./maintenance.tsx";
import { OVERLAYS, type Overlay } from "./overlay.ts";
import { standingOfRack } from "./rack-state.ts";

/** A rack with all that stands in it. */
export function RackPage() {
  const { id = "" } = useParams({ strict: false }) as { readonly id?: string };
  const { data, error } = useRack(id);
  const [overlay, setOverlay] = useState<Overlay>("state");
  const [chosen, setChosen] = useState<ReadonlySet<string> | undefined>();
  const { may } = useMe();
  if (error !== null) return <ErrorNote error={error} />;
  if (data === undefined) return <PageHead title={id} aside="Reading …" />;
  const canMaintain = may.has("millwright.v1.RackService/StartRackMaintenance");
  return (
    <>
      <PageHead
        title={data.name || data.id}
        aside={
          <>
            <StateChip {...standingOfRack(data)} />
            <span>
              <Age at={data.stateSince} />
            </span>
            <CopyButton text={data.id} what="the id" />
          </>
        }
        actions={
          <>
            <Recommended kind="rack" id={id} service={RackService} />
            {canMaintain && chosen === undefined && (
              <Button size="xs" variant="default" onClick={() => setChosen(new Set())}>
                Maintain…
              </Button>
            )}
            <CopyAs
              call={{
                cli: `millwright rack show ${shellWord(id)}`,
                method: RackService.method.getRack,
                request: { id },
              }}
            />
          </>
        }
      />
      {(data.error || data.reason) !== "" && <p>{data.error || data.reason}</p>}
      {chosen && <Maintenance rack={data} chosen={chosen} onEnd={() => setChosen(undefined)} />}
      <div className={classes.bar}>
        <Choice label="Overlay" value={overlay} choices={OVERLAYS} onChoose={setOverlay} />
      </div>
      <Block title="Elevation">
        <Elevation rack={data} overlay={overlay} {...(chosen && { chosen, onChoose: setChosen })} />
      </Block>
      <Columns>
        <RackFacts rack={data} />
        <Requests rack={data} />
      </Columns>
      <Block title="Story">
        <Story kind="rack" id={id} />
      </Block>
    </>
  );
}

/** A rack shows its devices too: an event of any of them makes it old. */
function useRack(id: string) {
  const query = useQuery({
    queryKey: topicKey("rack", "rack", id),
    queryFn: async ({ signal }) => (await clientOf(RackService).getRack({ id }, { signal })).rack,
  });
  const latest = useRef(query);
  latest.current = query;
  const [listener] = useState(() => ({ kind, id: of }: Pick<Event, "kind" | "id">) => {
    const { data, refetch } = latest.current;
    if (data?.members.some((member) => member.kind === kind && member.id === of))
      void refetch({ cancelRefetch: false });
  });
  useEvents(listener);
  return query;
}

function RackFacts({ rack }: { readonly rack: Rack }) {
  const { stateText, profile, profileExists, firmware, defaultFirmware, counts, runId, leftOut, createdAt } = rack;
  return (
    <Block title="Facts">
      <Facts
        items={[
          ["State", stateText],
          ["Run", runId !== "" && <ThingLink kind="run" id={runId} />],
          ["Profile", profile && (profileExists ? profile : `${profile}, which does not exist`)],
          ["Firmware", firmware || defaultFirmware],
          ...counts.map(
            ({ kind, ready, expected, notReady }) =>
              [
                `Ready: ${kind}`,
                <span key={kind} title={notReady.join("\n")}>{`${ready} of ${expected}`}</span>,
              ] as const,
          ),
          ["Left out", leftOut.map(({ id, why }) => `${id}: ${why}`).join("; ")],
          ["On record for", <Age key="created" at={createdAt} />],
        ]}
      />
    </Block>
  );
}

function Requests({ rack: { pendingRequests, lastRequests } }: { readonly rack: Rack }) {
  const rows = [...pendingRequests, ...lastRequests];
  if (rows.length === 0) return null;
  return (
    <Block title="Requests">
      <SmallTable
        label="Requests"
        head={["What", "Who", "When", "Outcome"]}
        rows={rows.map((request) => [
          `${request.kind} ${request.id}`,
          request.kind,
          request.initiator,
          <Age key="at" at={request.requestedAt} ago />,
          outcomeOf(request),
        ])}
      />
    </Block>
  );
}

const outcomeOf = ({ outcome, message }: RackRequest): string =>
  outcome === "" ? "asked" : message === "" ? outcome : `${outcome}: ${message}`;
