/** An answer that is not success, in MAAS's words: text, or the fields that are wrong. */
export class ApiFailure extends Error {
  readonly status: number;
  readonly body: string | Readonly<Record<string, readonly string[]>>;

  constructor(status: number, body: string | Readonly<Record<string, readonly string[]>>) {
    super(typeof body === "string" ? body : JSON.stringify(body));
    this.status = status;
    this.body = body;
  }
}

export const invalid = (field: string, message: string): ApiFailure => new ApiFailure(400, { [field]: [message] });
export const conflict = (message: string): ApiFailure => new ApiFailure(409, message);
export const notFound = (noun: string): ApiFailure => new ApiFailure(404, `No ${noun} matches the given query.`);
