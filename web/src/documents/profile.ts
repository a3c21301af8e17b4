// Written by document-types.mjs from schema/profile.schema.json.

/** The whole document. */
export interface Profile {
  /** Requests per second and their course. */
  arrivals: Arrivals;
  /** The program that made it. */
  brimful_version: string;
  /** Menascé and Almeida's a and b in the peak window. */
  burstiness?: Burstiness | null;
  /** Of all answers. */
  bytes: number;
  /** The classes of request in the peak window. */
  classes: Class[];
  /** How the classes were made, and why so many. */
  classes_by: string;
  /** The command line, without credentials. */
  command: string[];
  /** The index of dispersion of arrivals in the peak window, by length of the epoch. */
  dispersion: Dispersion[];
  /** The format of most lines, by name. */
  format: string;
  /** The first line of that format, read out field by field. */
  format_sample?: FieldSample[];
  /** Every format that lines were read with. */
  formats: FormatShare[];
  /** The first request, RFC 3339. */
  from: string;
  /** The Hurst parameter of arrivals in the peak window; `None` where there is not enough data. */
  hurst?: Hurst | null;
  /** Why there is none. */
  hurst_missing?: string | null;
  /** Times between requests, in the order of the log. */
  interarrival_s?: Times | null;
  /** What became of the lines. */
  lines: Lines;
  /** Requests by method. */
  methods: { [key: string]: number };
  /** What to know before these figures are used, one sentence each. */
  notes: string[];
  /** The busiest window; what classes, burstiness and the Workload are of. */
  peak: Peak;
  /** How requests concentrate on URLs. */
  popularity: Popularity;
  /** How many. */
  requests: number;
  /** Requests of robots, by what they call themselves. */
  robots: Robots;
  /** [`SCHEMA`]. */
  schema: string;
  /** Time that the server took, where the log has it. */
  service_s?: Times | null;
  /** What clients do, one after another. */
  sessions?: Sessions | null;
  /** Bytes of answers that have a body. */
  sizes: Sizes;
  /** What was read. */
  sources: Source[];
  /** Requests by status; `"0"` has none. */
  status: { [key: string]: number };
  /** The zone that hours and days are counted in. */
  timezone: string;
  /** The last one. */
  to: string;
  /** Distinct clients; an estimate. */
  unique_clients: number;
  /** Relative standard error of both estimates. */
  unique_error: number;
  /** Distinct URLs, without their queries' order being looked at; an estimate. */
  unique_urls: number;
  /** Time that those behind it took, where the log has it. */
  upstream_s?: Times | null;
  /** The load that has this traffic. */
  workload?: Workload | null;
  /** Why calls come in it as they do. */
  workload_arrivals_why: string;
  /** Answers without a body, by reason: `not_modified`, `not_found`, `head`, `redirect`, `error`, `aborted`, `other`. */
  zero_length: { [key: string]: number };
}

/** Requests by time. */
export interface Arrivals {
  /** Requests in the busiest minute. */
  busiest_minute: number;
  /** Requests in the busiest second. */
  busiest_second: number;
  /** Requests by hour of the day, 24. */
  by_hour: number[];
  /** Requests by weekday, Monday first, 7. */
  by_weekday: number[];
  /** Mean rate by weekday and hour, 7 × 24; 0 where the log does not reach. */
  by_weekday_and_hour: number[][];
  /** When the first step of `rates` begins, RFC 3339. */
  from: string;
  /** Requests per second, from the first to the last. */
  mean_rate: number;
  /** Mean rate in each step, one after another. */
  rates: number[];
  /** Length of a step of `rates`: a whole number of minutes. */
  step_s: number;
}

/** What becomes of a session's connections while its user thinks. */
export type BetweenBursts = "keep" | "close";

/** Menascé & Almeida (1998): epochs with more arrivals than the mean. */
export interface Burstiness {
  /** Mean rate of the epochs above the mean, over the mean. */
  a: number;
  /** Their share of all epochs. */
  b: number;
  /** Length of an epoch. */
  epoch_s: number;
  /** The largest count over the mean one. */
  peak_to_mean: number;
}

/** A class of request. */
export interface Class {
  /** Smallest and largest answer. */
  bytes_range: number[];
  /** Squared coefficient of variation of the answers' bytes. */
  bytes_scv: number;
  /** How it came about: `from the spanning tree's cluster 1`. */
  derived_from: string;
  /** Of an answer. */
  mean_bytes: number;
  /** Mean time that the server took, where the log has it. */
  mean_service_s?: number | null;
  /** Its name. */
  name: string;
  /** What belongs to it, for people: `1 – 4,372 bytes`. */
  range: string;
  /** Requests. */
  requests: number;
  /** Of all bytes. */
  share_bytes: number;
  /** Of all requests. */
  share_requests: number;
  /** Distinct URLs; an estimate. */
  unique_urls: number;
  /** Its most popular URLs, with what of its requests they are and how large. */
  urls: PopularUrl[];
}

/** One class of request. */
export interface Class2 {
  /** Request body. */
  body?: string;
  /** A file with the request body, in place of `body`; its path from the working directory. It is sent piece by piece as the server takes it, with its size at the start of the run as `Content-Length`. */
  body_file?: string;
  /** A file of comma-separated values for `{csv.COLUMN}`; its first line names the columns. The n-th call of the class has the n-th row, and after the last the first comes again. */
  csv?: string | null;
  /** What an answer has to be like; one that is not is `unexpected`, and a failure. */
  expect?: Expect | null;
  /** A set of files below `path`. */
  file_set?: FileSet | null;
  /** Extra header fields. */
  headers?: { [key: string]: string };
  /** HTTP method. */
  method?: string;
  /** Its name in every table and document; unique. */
  name: string;
  /** In which order those of a list are asked for. */
  order?: Order;
  /** Path and query; the URL on the command line gives scheme and authority. Left out where there are `urls`. Here, in `urls`, in the values of `headers` and in `body`, `{seq}`, `{uuid}`, `{rand:1-500}` and `{csv.COLUMN}` are filled in anew for every call. */
  path?: string;
  /** How often each of them is asked for, by its place in the list or set: `zipf:0.8`. Where it is absent, their weights say so. */
  popularity?: Popularity2 | null;
  /** In place of `urls`: a file of requests, one JSON object on a line: path, and method, headers, body, class, weight and bytes if wanted. Of requests that name a class it has those of this one. */
  requests_file?: string | null;
  /** What is asked for in place of one path, each as often as its weight says. */
  urls?: Url[];
  /** In place of `urls`: a file of them, one on a line, each with its weight and its bytes if wanted: `/a.png 3 4096`. */
  urls_file?: string | null;
  /** Its share of the calls, relative to the other classes' weights. */
  weight?: number;
}

/** The index of dispersion of counts at one length of epoch. */
export interface Dispersion {
  /** Length of an epoch. */
  epoch_s: number;
  /** How many there are. */
  epochs: number;
  /** Variance over mean; 1 for Poisson arrivals. */
  index: number;
  /** Its 95 % interval. */
  interval95: number[];
}

/** What all answers to a class have to be like. */
export interface Expect {
  /** Bytes of content, as sent: a compressed answer has those it is compressed to. */
  length?: number | null;
  /** SHA-256 of the content as sent, in 64 hexadecimal digits. */
  sha256?: Sha256 | null;
  /** The status: 200, "2xx", or several of these; any if absent. */
  status?: Statuses | null;
}

/** A field of a line of a log, as it was read. */
export interface FieldSample {
  /** What the field is: `client`, `host`, `time`, `method`, `target`, `protocol`, `status`, `bytes`, `took`, `upstream took`, `referer` or `agent`. */
  field: string;
  /** Its value; long ones are cut. */
  value: string;
}

/** Files below the class's path. */
export interface FileSet {
  /** Bytes of a file, or how those of all are distributed: the sizes that `brimful fileset` makes. */
  bytes?: Spread | null;
  /** How many. */
  files: number;
  /** The number of the file that such a walk begins at. */
  first?: number;
  /** They are asked for one after another, and one call in how many goes on to the next: with 0.25 every fourth call does, with 1 each, the very first one too. After the last comes the first. Without it each call asks for any of them. */
  ratio?: number | null;
  /** How many files such a walk goes on by, for clients that share a set: each begins at a file of its own and goes on by as many as there are clients. */
  stride?: number;
}

/** A format, and the share of lines that it reads. */
export interface FormatShare {
  /** Its name, or the format string that was given. */
  name: string;
  /** Of the lines that were parsed, 0..1. */
  share: number;
}

/** Long-range dependence. */
export interface Hurst {
  /** Length of the shortest scale that it rests on. */
  from_s: number;
  /** Its 95 % interval. */
  interval95: number[];
  /** Length of the longest. */
  to_s: number;
  /** H; 0.5 without, towards 1 with. */
  value: number;
}

/** `read = parsed + malformed + filtered`. */
export interface Lines {
  /** Lines that were left out: directives, empty lines, and what a filter excluded. */
  filtered: number;
  /** The first malformed ones. */
  first_malformed: MalformedLine[];
  /** Lines that are not of the format. */
  malformed: number;
  /** Requests that came before one above them in the log. */
  out_of_order: number;
  /** Requests that the profile is of. */
  parsed: number;
  /** All; what `wc -l` says, plus one for a last line without newline. */
  read: number;
}

/** How calls come. */
export interface Load {
  /** How calls of an open load are spaced, as `--arrivals` writes it; `constant` if absent. */
  arrivals?: string | null;
  /** Closed load: so many clients that wait for their answers. */
  clients?: number | null;
  /** Open load: the requests of access logs. */
  log?: LogReplay | null;
  /** Open load: calls per second, whatever the server does; with `stages`, the rate before the first. */
  rate?: number | null;
  /** S-Clients: so many connection attempts always under way. */
  s_clients?: number | null;
  /** Sessions: bursts of calls with time to think in between. */
  sessions?: SessionLoad | null;
  /** Open load: the rate goes linearly from stage to stage. */
  stages?: Stage[];
  /** Between an answer and the client's next call, in seconds; 0 if absent. */
  think_s?: number | null;
  /** Open load: at these instants. */
  trace?: Trace | null;
}

/** The requests of access logs. */
export interface LogReplay {
  /** Their paths. */
  files: string[];
  /** Whether the same requests come at a constant rate. */
  flattened?: boolean;
  /** The longest pause between two calls; longer ones are cut to it. */
  max_gap_s?: number | null;
  /** What the gaps between requests are divided by. */
  speed?: number;
}

/** A line that is not of the format. */
export interface MalformedLine {
  /** Where in the line, in bytes from 1. */
  column: number;
  /** What should have been there. */
  expected: string;
  /** In which file. */
  file: string;
  /** Which line of it, from 1. */
  line: number;
  /** The line's beginning, with what a terminal would obey escaped. */
  text: string;
}

/** In which order what is listed is asked for. */
export type Order = "random" | "listed" | "once";

/** The busiest window. */
export interface Peak {
  /** When it begins, RFC 3339. */
  from: string;
  /** Whether it was given, and not found. */
  given: boolean;
  /** Requests per second in it. */
  rate: number;
  /** Requests in it. */
  requests: number;
  /** How long it is. */
  seconds: number;
}

/** A URL. */
export interface PopularUrl {
  /** Mean bytes of its answers. */
  mean_bytes: number;
  /** The method that it is mostly asked for with. */
  method: string;
  /** How often. */
  requests: number;
  /** It may have been as much less often. */
  requests_error: number;
  /** Path and query, as in the log. */
  url: string;
}

/** How requests concentrate. */
export interface Popularity {
  /** Share of requests for the so many most popular URLs: pairs of their number and the share. */
  concentration: ([number, number])[];
  /** The most popular ones, exact or with the error that they have. */
  urls: PopularUrl[];
  /** s of Zipf's law: the n-th most popular URL is asked for as n^−s. */
  zipf?: number | null;
  /** R² of that, over the logarithms of rank and count. */
  zipf_fit?: number | null;
}

/** A law of popularity, written as `zipf:0.8`. */
export type Popularity2 = string;

/** Requests of robots. */
export interface Robots {
  /** Bytes of their answers. */
  bytes: number;
  /** `keep`, `drop` or `only`. */
  policy: string;
  /** How many, whatever became of them. */
  requests: number;
}

/** One session. */
export interface Script {
  /** Its bursts, at least one. */
  bursts: ScriptedBurst[];
}

/** One burst of a session. */
export interface ScriptedBurst {
  /** Its calls, at least one; the first is answered before the others are made. */
  calls: ScriptedCall[];
  /** Seconds from its last answer to the next burst's first call; as the sessions' `think_s` says if absent. */
  think_s?: number | null;
}

/** One call of a burst. */
export interface ScriptedCall {
  /** Request body; the class's if absent. */
  body?: string | null;
  /** The class that it is reported as; the first one if absent. */
  class?: string;
  /** HTTP method; the class's if absent. */
  method?: string;
  /** Path and query; the class's if absent. */
  path?: string;
}

/** A load of sessions. */
export interface SessionLoad {
  /** How they are spaced, as `--arrivals` writes it; `poisson` if absent. */
  arrivals?: string | null;
  /** What becomes of its connections between bursts. */
  between_bursts?: BetweenBursts;
  /** Bursts of one session; 1 if absent. */
  bursts?: Spread | null;
  /** In place of `bursts`: calls of one session in all, in as many bursts as it takes. */
  calls?: Spread | null;
  /** Calls of one burst; the first is answered before the others are made; 1 if absent. */
  calls_per_burst?: Spread | null;
  /** Connections of one session at most. */
  connections?: number;
  /** Whether each session keeps the cookies that it is given, and sends them. */
  cookies?: boolean;
  /** Whether the load begins as if it had always gone on. */
  in_progress?: boolean;
  /** Whether the other calls of a burst go out together on one connection, as long as the server keeps it open. */
  pipelined?: boolean;
  /** New sessions per second, whatever the server does. */
  rate?: number | null;
  /** Seconds from the end of a user's session to the next one's beginning; 0 if absent. */
  rest_s?: Spread | null;
  /** Whether a call whose answer is whole, but not what its class expects, is made again at once, and does not end its session. */
  retry?: boolean;
  /** Sessions that are written out, made in turn, in place of `bursts` and `calls_per_burst`. */
  script?: Script[];
  /** So many sessions in all; no bound if absent. */
  sessions?: number | null;
  /** In place of `bursts`: the probability that a user stays for another burst after each. */
  stay?: number | null;
  /** Seconds from the last answer of a burst to the next burst's first call. */
  think_s?: Spread;
  /** In place of a rate: so many users, each beginning another session after the last one. */
  users?: number | null;
}

/** What clients do, one request after another. */
export interface Sessions {
  /** A pause as short as this goes on with a burst: a page and what it embeds. */
  burst_gap_s: number;
  /** Bursts of one. */
  bursts: Times;
  /** Sessions that were ended by force because too many were open at once. */
  cut_short: number;
  /** A pause as long as this ends one. */
  gap_s: number;
  /** From its first request to its last. */
  length_s: Times;
  /** New ones per second. */
  rate: number;
  /** Requests of one. */
  requests: Times;
  /** Requests of a burst. */
  requests_per_burst: Times;
  /** How many. */
  sessions: number;
  /** Between two bursts. */
  think_s: Times;
}

/** The digest of a body. */
export type Sha256 = string;

/** Bytes of answers. */
export interface Sizes {
  /** Share of answers with more bytes than this: pairs of bytes and share, for a chart on logarithmic axes. */
  complementary: ([number, number])[];
  /** The largest. */
  max: number;
  /** Mean bytes of these. */
  mean: number;
  /** Percentiles in bytes: `"50"`, `"90"`, `"95"`, `"99"`, `"99.9"`. */
  percentiles: { [key: string]: number };
  /** How many answers have a body. */
  responses: number;
  /** Index of the tail, where it falls like a power of the size. */
  tail?: Tail | null;
}

/** One file or stream. */
export interface Source {
  /** Bytes read from it, after decompression. */
  bytes: number;
  /** Why it was not read to its end, if it was not. */
  cut_short?: string | null;
  /** Lines read from it. */
  lines: number;
  /** Its path, or `-`. */
  path: string;
}

/** A distribution of numbers that are not negative; the unit is that of the field. */
export type Spread = number | string;

/** The rate goes linearly from where it was to `rate` within `length_s`. A stage of no length is a jump, one with the rate before it a level. */
export interface Stage {
  /** How long, in seconds. */
  length_s: number;
  /** Calls per second at its end. */
  rate: number;
}

/** One of several. */
export type Status = number | string;

/** Some status codes. */
export type Statuses = number | string | Status[];

/** A tail that falls like size^−index. */
export interface Tail {
  /** From so many bytes on. */
  from_bytes: number;
  /** α; below 2 the variance has no bound. */
  index: number;
  /** Its 95 % interval. */
  interval95: number[];
  /** How many answers that are. */
  responses: number;
}

/** A distribution of times. */
export interface Times {
  /** The longest. */
  max: number;
  /** Their mean. */
  mean: number;
  /** Percentiles: `"50"`, `"90"`, `"95"`, `"99"`. */
  percentiles: { [key: string]: number };
  /** How many. */
  samples: number;
  /** Squared coefficient of variation. */
  scv: number;
}

/** How the connections to an `https://` URL are secured: the table `[tls]`. Keys and certificates are never in a document; the command line names their files. */
export interface Tls {
  /** Whether any certificate will do. */
  insecure?: boolean;
  /** The oldest version that is spoken. */
  minimum?: TlsVersion;
  /** Whether a new connection resumes the session of an earlier one where it has a ticket for it. Without that every handshake is a full one, as those of users who come for the first time are. */
  resume?: boolean;
  /** The server's name: what it is asked for, and what its certificate has to be for; the URL's host if absent. */
  sni?: string | null;
}

/** A version of TLS. */
export type TlsVersion = "1.2" | "1.3";

/** The instants of a file. */
export interface Trace {
  /** Its path: one instant in seconds per line. */
  file: string;
  /** What the gaps between them are divided by. */
  speed?: number;
}

/** One of the URLs of a class. */
export interface Url {
  /** Bytes of the answer's body, where that is known: the size of the file that `brimful fileset` makes. */
  bytes?: number | null;
  /** Path and query. */
  path: string;
  /** Its share of the class's calls, relative to the other URLs' weights. */
  weight?: number;
}

/** The whole document. */
export interface Workload {
  /** The request classes, at least one. */
  class: Class2[];
  /** How calls come; absent where a command line says it, or where it is the command's own business. */
  load?: Load | null;
  /** How connections to an `https://` URL are secured, where that is not as usual. */
  tls?: Tls | null;
}
