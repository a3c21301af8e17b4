# Makes access.log and utilization.csv: 40 minutes of the paper's server, with the proportions of its Table 1, the demands
# of its Table 2, and noise. The figures are the same on every machine.
#
#     awk -f traffic.awk

# A uniform number from 0 to 1 (Park & Miller 1988).
function uniform() {
    state = (state * 16807) % 2147483647
    return state / 2147483647
}

# A standard normal number, approximately.
function normal(    i, sum) {
    for (i = 0; i < 12; i++) sum += uniform()
    return sum - 6
}

BEGIN {
    state = 19990426
    split("0.4576 0.8923 0.9801 1", until)                # Table 1: shares of the requests, summed up
    split("0 1160.6 8811.8 45553", bytes)                 # mean sizes with the shares of the data in Table 1
    split("0.0004 0.00852 0.06476 0.3344", cpu)           # Table 2, in seconds
    split("0.00174 0.00184 0.01399 0.07225", disk3)
    disk1 = 0.00074
    disk2 = 0.00067
    print "time,cpu,disk1,disk2,disk3" > "utilization.csv"
    for (minute = 0; minute < 40; minute++) {
        n = int(60 * (8 + minute % 10 * 2.2) + 0.5)
        busy_cpu = busy_disk3 = 0
        for (i = 0; i < n; i++) {
            drawn = uniform()
            for (class = 1; drawn > until[class]; class++);
            busy_cpu += cpu[class]
            busy_disk3 += disk3[class]
            size = int(bytes[class] * (0.55 + 0.9 * uniform()) + 0.5)
            answer = class == 1 ? "304 -" : "200 " size
            printf "10.0.%d.%d - - [26/Apr/1999:15:%02d:%02d -0400] \"GET /%d/%d HTTP/1.0\" %s\n", \
                i % 7, i % 200, minute, int(i * 60 / n), class, i % 50, answer > "access.log"
        }
        printf "1999-04-26T15:%02d:00-04:00,%.2f,%.2f,%.2f,%.2f\n", minute, \
            100 * busy_cpu / 60 / 2 + 0.2 * normal(), \
            100 * n * disk1 / 60 + 0.05 * normal(), \
            100 * n * disk2 / 60 + 0.05 * normal(), \
            100 * busy_disk3 / 60 + 0.2 * normal() > "utilization.csv"
    }
}
