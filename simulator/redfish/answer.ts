/** What a Redfish service answers; the listener turns it into HTTP. */
export interface Answer {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: unknown;
  /** The answer goes on: the device's events follow. */
  readonly isEventStream?: true;
  /** No answer yet: this has to be fetched first, and is then given to the same request (`fetched`). */
  readonly fetchFirst?: string;
}

export const ok = (body: unknown): Answer => ({ status: 200, body });
export const noContent: Answer = { status: 204 };

/** The messages of the standard's Base registry that we use, with the HTTP status each goes with. */
const MESSAGES = {
  Success: [200, "OK", "The request completed successfully."],
  GeneralError: [500, "Critical", "A general error has occurred. %1"],
  MalformedJSON: [400, "Critical", "The request body submitted was malformed JSON and could not be parsed."],
  UnrecognizedRequestBody: [400, "Warning", "The service detected a malformed request body: %1"],
  PropertyMissing: [400, "Warning", "The property %1 is a required property and must be included in the request."],
  PropertyValueTypeError: [400, "Warning", "The value of the property %1 is not of the type that it accepts."],
  PropertyUnknown: [400, "Warning", "The property %1 is not in the list of valid properties for the resource."],
  PropertyValueNotInList: [
    400,
    "Warning",
    "The value for the property %1 is not in the list of acceptable values: %2.",
  ],
  PropertyValueConflict: [
    400,
    "Warning",
    "The property %1 could not be written because its value would conflict with the value of the property %2.",
  ],
  ResourceInStandby: [409, "Critical", "The request could not be performed because the resource is in standby."],
  ResourceInUse: [409, "Warning", "The change to the requested resource failed because the resource is in use. %1"],
  ActionParameterMissing: [
    400,
    "Critical",
    "The action %1 requires the parameter %2 to be present in the request body.",
  ],
  ActionParameterUnknown: [400, "Warning", "The action %1 was submitted with the invalid parameter %2."],
  ActionParameterValueNotInList: [
    400,
    "Warning",
    "The value for the parameter %2 in the action %1 is not in the list of acceptable values: %3.",
  ],
  QueryParameterValueTypeError: [
    400,
    "Warning",
    "The value of the query parameter %1 is not of the type that it accepts.",
  ],
  EventSubscriptionLimitExceeded: [
    503,
    "Critical",
    "The event subscription failed due to the number of simultaneous subscriptions exceeding the limit.",
  ],
  NoValidSession: [401, "Critical", "There is no valid session established with the implementation. %1"],
  ResourceMissingAtURI: [404, "Critical", "The resource at the URI %1 was not found."],
  OperationNotAllowed: [405, "Critical", "The HTTP method %1 is not allowed on this resource."],
  PayloadTooLarge: [413, "Critical", "The request body is larger than the service accepts."],
  ServiceTemporarilyUnavailable: [503, "Critical", "The service is temporarily unavailable. Retry in %1 seconds."],
  SessionLimitExceeded: [
    503,
    "Critical",
    "The session establishment failed due to the number of simultaneous sessions exceeding the limit.",
  ],
} as const satisfies Record<string, readonly [number, string, string]>;
type MessageName = keyof typeof MESSAGES;

function messageOf(name: MessageName, args: readonly string[]) {
  const [, severity, text] = MESSAGES[name];
  return {
    "@odata.type": "#Message.v1_1_2.Message",
    MessageId: `Base.1.16.${name}`,
    Message: text.replace(/%(\d)/g, (_, index: string) => args[Number(index) - 1] ?? "").trim(),
    MessageArgs: args,
    MessageSeverity: severity,
    Resolution: severity === "OK" ? "None." : "Correct the request and resubmit it.",
  };
}

export const done: Answer = ok({ "@Message.ExtendedInfo": [messageOf("Success", [])] });

/** Of the parts of an error only a code that says nothing, and the reason where programs do not look for it. */
export function reasonInMessageOnly(answer: Answer): Answer {
  const reason = (answer.body as { error?: { message?: string } } | undefined)?.error?.message;
  if (reason === undefined) return answer;
  const code = "Base.1.0.GeneralError";
  return { ...answer, body: { error: { code, message: reason, "@Message.ExtendedInfo": [{ MessageId: code }] } } };
}

/** An error in the form that DSP0266 prescribes. */
export function refuse(name: Exclude<MessageName, "Success">, ...args: readonly string[]): Answer {
  const message = messageOf(name, args);
  const error = { code: message.MessageId, message: message.Message, "@Message.ExtendedInfo": [message] };
  return { status: MESSAGES[name][0], body: { error } };
}
