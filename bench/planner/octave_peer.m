% Answers requests with GNU Octave's queueing package (M. Marzolla), one JSON object per line:
% {"task": ..., "model": ...}.
1;
warning('off', 'all');
pkg load queueing

function answer = solve(request)
  classes = request.model.classes;
  stations = request.model.stations;
  demands = reshape(request.model.demands, numel(stations), numel(classes))';  % classes x stations
  visits = ones(size(demands));
  if any(arrayfun(@(s) isfield(s, 'servers') && !isempty(s.servers) && s.servers > 1, stations))
    error('several servers');
  end
  servers = ones(1, numel(stations));
  start = cputime();
  switch request.task
    case 'exact'
      [~, ~, ~, X] = qncmmva([classes.population], demands, visits, servers, [classes.think]);
      answer.cpu_s = cputime() - start;
      answer.throughput = X(:, 1)';
    case 'curve'
      for factor = request.factors(:)'
        [~, R] = qnom([classes.rate] * factor, demands, visits, servers);
      end
      answer.cpu_s = cputime() - start;
      answer.response_time = sum(R, 2)';
    otherwise
      error('the queueing package has no such method');
  end
end

found = pkg('list', 'queueing');
printf('%s\n', jsonencode(struct('version', found{1}.version)));
fflush(stdout);
line = fgetl(stdin);
while ischar(line)
  if !isempty(line)
    try
      answer = solve(jsondecode(line));
    catch problem
      answer = struct('error', problem.message);
    end
    printf('%s\n', jsonencode(answer));
    fflush(stdout);
  end
  line = fgetl(stdin);
end
