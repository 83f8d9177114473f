import type { Machine } from "../devices/machine.ts";
import { type Answer, ok } from "./answer.ts";
import type { RedfishRequest } from "./redfish-service.ts";
import { collection } from "./resources.ts";

interface Service {
  answer(request: RedfishRequest): Answer;
}

/** What is the own machine's, and what the same of its neighbour is called on the same controller. */
const PLACES = [
  ["/redfish/v1/Systems/1", "/redfish/v1/Systems/2"],
  ["/redfish/v1/Chassis/1", "/redfish/v1/Chassis/2"],
  ["/redfish/v1/Managers/bmc", "/redfish/v1/Managers/bmc2"],
] as const;
const COLLECTIONS = [
  ["/redfish/v1/Systems", "ComputerSystemCollection", "Systems"],
  ["/redfish/v1/Chassis", "ChassisCollection", "Chassis"],
  ["/redfish/v1/Managers", "ManagerCollection", "Managers"],
] as const;

/**
 * One controller for two machines. The neighbour comes first in every list: whoever takes the first for the machine that was meant
 * works on somebody else's.
 *
 * @param makeNeighbour the neighbour's resources, behind the account of this controller; undefined for a machine that has none
 */
export function severalSystems(device: Machine, own: Service, makeNeighbour: () => Service | undefined): Service {
  let made: { readonly service: Service | undefined } | undefined;
  return {
    answer(request) {
      if (!device.has("several_systems")) return own.answer(request);
      made ??= { service: makeNeighbour() };
      return made.service === undefined ? own.answer(request) : answerForTwo(own, made.service, request);
    },
  };
}

function answerForTwo(own: Service, neighbour: Service, request: RedfishRequest): Answer {
  const path = request.path.replace(/\/$/, "");
  const place = PLACES.find(([, other]) => path === other || path.startsWith(`${other}/`));
  if (place !== undefined) return renamed(neighbour.answer({ ...request, path: path.replace(place[1], place[0]) }));
  const answer = own.answer(request);
  const list = COLLECTIONS.find(([name]) => name === path);
  if (list === undefined || answer.status !== 200 || request.method !== "GET") return answer;
  const members = PLACES.filter(([mine]) => mine.startsWith(`${path}/`)).flatMap(([mine, other]) => [other, mine]);
  return ok(collection(path, list[1], list[2], members));
}

/** The neighbour's words with the names that its things have here. */
function renamed(answer: Answer): Answer {
  if (answer.body === undefined) return answer;
  let text = JSON.stringify(answer.body);
  for (const [mine, other] of PLACES) text = text.replaceAll(new RegExp(`${mine}(?=[/"])`, "g"), other);
  return { ...answer, body: JSON.parse(text) };
}
