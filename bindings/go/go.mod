module cohort.example/cohort

go 1.19
